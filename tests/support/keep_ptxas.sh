#!/bin/bash
# Launcher of nvcc: runs it, and leaves what ptxas says of each kernel beside the object file, as <object>.ptxas.
object=
previous=
for argument; do
  [ "$previous" = -o ] && object=$argument
  previous=$argument
done
case $object in
  *.o)
    "$@" --resource-usage 2> "$object.messages"
    status=$?
    grep -E '^ptxas info|bytes stack frame' "$object.messages" > "$object.ptxas"
    grep -vE '^ptxas info|bytes stack frame|^$' "$object.messages" >&2
    rm -f "$object.messages"
    exit $status
    ;;
  *) exec "$@" ;;
esac
