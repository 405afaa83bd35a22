#!/usr/bin/env bash
# webdataset_oracle.sh SCRIPT PRINT_SAMPLES: runs the script with the tests' Python, where there is one.
if [[ ! -x "${SLUICE_TEST_PYTHON:-}" ]]; then
  echo "skipped: no Python with webdataset; scripts/setup installs one"
  exit 77
fi
exec "$SLUICE_TEST_PYTHON" "$@"
