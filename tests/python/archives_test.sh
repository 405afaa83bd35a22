#!/usr/bin/env bash
# A training handed between this program and Python's torch, by archives: 3 steps here, 2 there, 2 here, compared with
# Python's 7; for each of LibTorch's optimizers. Usage: archives_test.sh PROGRAM
set -euo pipefail
export OMP_NUM_THREADS=1
program=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python=$("$here/venv.sh") || {
  echo "skipped: Python's torch could not be installed into .deps/venv"
  exit 77
}
"$program" 3 "" "$work/first"
"$python" "$here/archives_oracle.py" "$work/first" "$work/second"
"$program" 2 "$work/second" "$work/third"
"$python" "$here/archives_oracle.py" "$work/third"
echo passed
