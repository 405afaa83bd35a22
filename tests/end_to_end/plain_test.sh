#!/usr/bin/env bash
# plain_test.sh SLUICE: the program that users call does not load LibTorch, and becomes sluice-torch for what needs it.
set -euo pipefail
program="$1"
fail() { printf '%s\n' "$*" >&2; exit 1; }

if ldd "$program" | grep -E 'libtorch|libc10'; then fail "$program loads LibTorch"; fi
"$program" run ls --help | grep -q -- --json || fail "run is not there"
"$program" data ls --help | grep -q SHARD || fail "data is not there"

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cp "$program" "$work/sluice"
# What the whole program has is not there without it, and that is said.
if "$work/sluice" train --model lenet >"$work/out" 2>"$work/err"; then fail "train without LibTorch"; fi
grep -q -F "$work/sluice-torch is not there" "$work/err" || { cat "$work/err"; fail "the message is wrong"; }
"$work/sluice" data ls --help >"$work/out" 2>"$work/err"
test ! -s "$work/err" || { cat "$work/err"; fail "a message where nothing is wrong"; }
printf '#!/bin/sh\necho "$0: $*"\nexit 21\n' >"$work/sluice-torch"
chmod +x "$work/sluice-torch"
status=0
"$work/sluice" train --model lenet >"$work/out" || status=$?
test "$status" = 21 || fail "expected the other program's status, found $status"
grep -q -- 'train --model lenet$' "$work/out" || { cat "$work/out"; fail "expected the same arguments"; }
# A link to the program finds what lies beside the program.
ln -s "$work/sluice" "$work/link"
"$work/link" --version >"$work/out" || true
grep -q -- '--version$' "$work/out" || { cat "$work/out"; fail "not started through a link"; }
echo "all good"
