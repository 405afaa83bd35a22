#!/usr/bin/env bash
# Prints the path of a Python with torch (CPU), safetensors, numpy and tensorboard, made in .deps/venv when it is not
# there. Fails when the packages cannot be had.
set -euo pipefail
# The one that scripts/setup made, when there is one.
if [[ -x "${SLUICE_TEST_PYTHON:-}" ]]; then
  echo "$SLUICE_TEST_PYTHON"
  exit
fi
root=$(cd "$(dirname "$0")/../.." && pwd)
venv=$root/.deps/venv
stamp=$venv/packages-1
if [[ ! -e $stamp ]]; then
  {
    rm -rf "$venv"
    python3 -m venv "$venv"
    # The CPU build by its local version: the other one of this name is ten times as big.
    "$venv/bin/pip" install --quiet --disable-pip-version-check 'torch==2.13.0+cpu' 'safetensors>=0.5' 'numpy<3' \
      'tensorboard>=2.17' || exit 1
    touch "$stamp"
  } >&2
fi
echo "$venv/bin/python"
