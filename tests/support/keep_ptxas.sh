#!/bin/bash
# Launcher of nvcc: runs it, and leaves what ptxas says of each kernel beside the object file, as <object>.ptxas, and the seconds of CPU
# that it took, as <object>.seconds.
object=
previous=
for argument; do
  [ "$previous" = -o ] && object=$argument
  previous=$argument
done
case $object in
  *.o)
    TIMEFORMAT='%U %S'
    { time "$@" --resource-usage 2> "$object.messages"; } 2> "$object.time"
    status=$?
    awk '{ printf "%.1f\n", $1 + $2 }' "$object.time" > "$object.seconds"
    grep -E '^ptxas info|bytes stack frame' "$object.messages" > "$object.ptxas"
    grep -vE '^ptxas info|bytes stack frame|^$' "$object.messages" >&2
    rm -f "$object.messages" "$object.time"
    exit $status
    ;;
  *) exec "$@" ;;
esac
