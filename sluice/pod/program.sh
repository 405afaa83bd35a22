# Takes a program on a host: sent there over the connection's standard input, behind it come the archive's bytes.
# Needs a POSIX sh, GNU coreutils, grep, tar and util-linux's flock. Before this text stand the settings:
#   sum size           SHA-256 and bytes of the archive, packed with zstd
#   tar_sum tar_size   of the tar archive inside, which is sent where this host has no zstd
# It answers on standard output with lines that begin with "sluice-program":
#   wait               another connection is bringing it
#   send FORM OFFSET   the client shall send the archive (zst or tar) from this byte on, and end its output
#   there | done       it was here already, or is now
#   short BYTES        the connection ended early; so much is kept for the next
#   damaged SUM        what came has another checksum, and was thrown away
#   failed REASON
umask 077
cache="${XDG_CACHE_HOME:-$HOME/.cache}/sluice/programs"

say() { printf 'sluice-program %s\n' "$*"; }
fail() { say "failed $*"; exit 1; }
bytes() { stat -c %s "$part" 2>/dev/null || echo 0; }

# One connection at a time. One whose file has not grown for a minute hangs behind a network that is gone.
wait_for_turn() {
  still=0 last=''
  until flock -n 9; do
    [ -z "$last" ] && say wait
    now=$(bytes)
    if [ "$now" = "$last" ]; then still=$((still + 1)); else still=0; fi
    last=$now
    if [ "$still" -ge 120 ] && read -r holder host <"$sum.holder" && [ "$host" = "$(uname -n)" ]; then
      kill -s KILL -- "-$holder" 2>/dev/null || kill -s KILL "$holder" 2>/dev/null
      still=0
    fi
    sleep 0.5
  done
  echo "$$ $(uname -n)" >"$sum.holder"
}

receive() {
  [ "$(bytes)" -le "$size" ] || rm -f "$part"
  say "send $form $(bytes)"
  error=$(cat 2>&1 >>"$part") || fail "$cache: $error"
  if [ "$(bytes)" -lt "$size" ]; then
    say "short $(bytes)"
    exit 3
  fi
  found=$(sha256sum <"$part") && found=${found%% *}
  if [ "$found" != "$sum_to_get" ]; then
    rm -f "$part"
    say "damaged $found"
    exit 4
  fi
}

# Complete or not at all: the folder gets its name when everything is in it.
unpack() {
  rm -rf "$sum.new"
  mkdir "$sum.new" || fail "cannot create $cache/$sum.new"
  set --
  [ "$form" = tar ] || set -- -I zstd
  error=$(tar "$@" --no-same-owner --strip-components=1 -C "$sum.new" -xf "$part" 2>&1) ||
    { rm -rf "$sum.new"; fail "cannot unpack it in $cache: $(printf %s "$error" | head -n 1)"; }
  mv "$sum.new" "$sum" || fail "cannot rename $cache/$sum.new"
  rm -f "$part" "$sum.holder"
}

# The three programs that were used last stay, and those that still run.
tidy() {
  touch "$sum"
  for old in $(ls -1t | grep -xE '[0-9a-f]{64}' | tail -n +4); do
    grep -lqsF "$cache/$old/" /proc/[0-9]*/maps || rm -rf "$old" "$old".*
  done
  find . -maxdepth 1 -name '*.part' -mtime +7 -delete
}

mkdir -p "$cache" && cd "$cache" && cache=$(pwd -P) || fail "cannot create $cache"
if command -v zstd >/dev/null; then
  form=zst sum_to_get=$sum
else
  form=tar sum_to_get=$tar_sum size=$tar_size
fi
part="$sum.$form.part"
if [ ! -d "$sum" ]; then
  exec 9>>"$sum.lock" || fail "cannot write in $cache"
  wait_for_turn
fi
if [ -d "$sum" ]; then
  answer=there
else
  receive
  unpack
  answer='done'
fi
rm -f "$sum.lock"
tidy
say "$answer"
