# What the end-to-end tests share. Sourced; `program` is the program under test.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
failures=0
export OMP_NUM_THREADS=1  # small nets: a second thread would only wait

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  failures=$((failures + 1))
}

# expect STATUS TEXT COMMAND…: the command ends with that status and says the text, on one line of standard error.
expect() {
  local status=$1 text=$2 got=0
  shift 2
  "$@" >"$work/out" 2>"$work/err" || got=$?
  [[ $got == "$status" ]] || fail "status $got instead of $status: $* ($(tail -3 "$work/err"))"
  [[ -z $text ]] || grep -qF -- "$text" "$work/err" || fail "standard error lacks \"$text\": $* ($(tail -3 "$work/err"))"
  if grep -qE 'Exception raised from|Aborted|runtime error|AddressSanitizer' "$work/err"; then
    fail "no plain message: $* ($(head -5 "$work/err"))"
  fi
}

# Two sets of shards: $work/train and $work/test.
make_shards() {
  python3 "$here/make_images.py" "$work/train-images" 3 40
  python3 "$here/make_images.py" "$work/test-images" 3 7
  "$program" data pack "$work/train-images" "$work/train" >/dev/null
  "$program" data pack "$work/test-images" "$work/test" >/dev/null
}

# Waits until a file is there.
await() {
  for _ in $(seq 6000); do
    [[ -e $1 ]] && return 0
    sleep 0.01
  done
  fail "$1 did not appear"
}

# Waits until a file is there that is newer than another.
await_newer() {
  for _ in $(seq 6000); do
    [[ $1 -nt $2 ]] && return 0
    sleep 0.01
  done
  fail "$1 did not appear, or stayed as it was"
}

finish() {
  if ((failures > 0)); then
    printf '%d failures\n' "$failures" >&2
    exit 1
  fi
  printf 'passed\n'
}
