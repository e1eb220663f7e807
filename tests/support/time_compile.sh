#!/bin/bash
# Compiler launcher: runs the compiler and leaves its user CPU seconds beside the object file, as <object>.seconds.
object=
previous=
for argument; do
  [ "$previous" = -o ] && object=$argument
  previous=$argument
done
case $object in
  *.o)
    TIMEFORMAT=%U
    exec 3>&2
    { time "$@" 2>&3; } 2> "$object.seconds"
    ;;
  *) exec "$@" ;;
esac
