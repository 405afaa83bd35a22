#!/usr/bin/env bash
# quickstart_test.sh SETTINGS: scripts/quickstart with this build's program, for one epoch.
set -euo pipefail
source "$1"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
SLUICE_PROGRAM="$program" SLUICE_OUT="$work" "$source_folder/scripts/quickstart" --epochs 1 --target-accuracy 0 |
  tee "$work/said"
grep -Eq '^Test accuracy [0-9]+\.[0-9] %, [0-9]+\.[0-9] examples a second\.$' "$work/said"
test -s "$work/run/metrics.csv" -a -s "$work/run/metrics.jsonl"
test -d "$work/run/best" -a -d "$work/run/last"
