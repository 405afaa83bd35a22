#!/usr/bin/env bash
# notebook_test.sh PROGRAM [NOTEBOOK]: runs examples/notebooks/first_steps.ipynb in Jupyter with this build's program
# (notebook_test.py). Jupyter goes into .deps/notebook-python, once, in the versions of scripts/notebook-python.lock.
# 140 MB are too much for each `make test`, so the label is `wide`: scripts/run_tests build/ci -L wide -R notebook.
set -euo pipefail
program="$(realpath "$1")"
cd "$(dirname "$0")/../.."
folder=.deps/notebook-python
if ! cmp -s scripts/notebook-python.lock "$folder/made-from"; then
  if ! { python3 -m venv --clear "$folder" && "$folder/bin/python3" -m pip install --quiet --disable-pip-version-check \
    --no-input --only-binary=:all: --require-hashes -r scripts/notebook-python.lock; }; then
    rm -rf "$folder"
    echo "skipped: Jupyter could not be installed into $folder"
    exit 77
  fi
  cp scripts/notebook-python.lock "$folder/made-from"
fi
exec "$folder/bin/python3" tests/end_to_end/notebook_test.py "$program" "${2:-examples/notebooks/first_steps.ipynb}"
