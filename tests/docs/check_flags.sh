#!/bin/sh
# check_flags.sh PROGRAM PAGE: the page of flags is what the program writes.
set -eu
"$1" flags-page | diff -u "$2" - || {
  echo "$2 is not what the program's flags say; write it again: sluice flags-page > $2" >&2
  exit 1
}
