#!/usr/bin/env bash
# The sources are as clang-format 14, the version of Debian 12, writes them. Status 77: another version is installed.
set -euo pipefail
if ! clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
  echo "clang-format 14 is not installed"
  exit 77
fi
exec "$1/scripts/format" --check
