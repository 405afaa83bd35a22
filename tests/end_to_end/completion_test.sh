#!/usr/bin/env bash
# completion_test.sh PROGRAM: each shell loads the completion that the program writes for it, and completes by it. Shells
# that are not installed are left out; bash always is.
set -euo pipefail
program=$1
source "$(dirname "$0")/common.sh"

# proposes SHELL EXPECTED WORD…: for the last word, of a line that begins with sluice.
proposes() {
  local shell=$1 expected=$2 got
  shift 2
  got=$("in_$shell" sluice "$@" | sort | tr '\n' ' ')
  [[ $got == "$expected " ]] || fail "$shell proposes \"$got\" instead of \"$expected\" for: sluice $*"
}

in_bash() {
  bash --norc --noprofile -c 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sluice
    printf "%s\n" "${COMPREPLY[@]}"' bash "$work/sluice.bash" "$@"
}

in_zsh() { zsh -f "$here/zsh_proposals.zsh" "$work/sluice.zsh" "$@"; }

in_fish() {
  fish --no-config -c "source $work/sluice.fish; complete --do-complete '$*'" | cut -f1
}

for shell in bash zsh fish; do "$program" completion "$shell" >"$work/sluice.$shell"; done
expect 2 'SHELL is required' "$program" completion
expect 2 'tcsh' "$program" completion tcsh

for shell in bash zsh fish; do
  if ! command -v "$shell" >/dev/null; then
    printf 'not installed: %s\n' "$shell"
    continue
  fi
  "$shell" -n "$work/sluice.$shell" || fail "$shell finds a mistake in its file"
  proposes "$shell" train tr
  proposes "$shell" 'ls' data l
  proposes "$shell" '--precision --prefetch' train --pre
  proposes "$shell" 'bf16 f32' train --precision ''
  proposes "$shell" --topology compile --top
  proposes "$shell" '--spot' tpu create --spo
  proposes "$shell" '--reservation' tpu create --res
done
expect 2 'did you mean --reservation?' "$program" tpu create a --type v3-8 --zones us-central1-a --resevation r
# Nobody needs to see it.
expect 0 '' "$program" completion bash
if grep -q 'compile-worker' "$work/out"; then fail "a verb that is not for people is proposed"; fi
finish
