# Takes a folder on a host: sent there over the connection's standard input. Only what this host lacks is sent.
# Needs a POSIX sh, GNU coreutils, sed, tar and xargs; zstd is used if it is there. Before this text stand the settings:
#   step     ask or take
#   folder   the folder on this host, absolute or below the home folder
#   run      the run's name
#   form     of `take`: gz or zst
#   object   the URL of an object in a bucket that is read instead of the standard input; empty: none
#   sum      the SHA-256 of that object
# ask:  reads the client's entries, one a line and sorted by bytes: PATH, a tab, and a key that changes with the entry. It
#       answers with the paths of those that have changed since they were taken, on either side, or with `all`; then with
#       `end`, or `end zstd` if there is zstd.
# take: reads a tar archive with these entries, and notes them.
# To read an object, this host needs curl, and a service account that may read the bucket. If it cannot, the status is 75.
# An entry's note, in the file `known` of the folder's place in the state folder, has its path, its key and what stat says of
# it here: a change of its content, mode or owner changes the time of its last change of state. Folders, which change with
# what is in them, count by their mode and number alone.
mask=$(umask)
umask 077
tab=$(printf '\t')
cd && { umask "$mask"; mkdir -p -- "$folder"; } && cd -- "$folder" || exit 1
umask 077
state="${XDG_STATE_HOME:-$HOME/.local/state}/sluice/synced/$(pwd -P | sha256sum | cut -c 1-32)"
wanted=$state/$run.wanted copy=$state/$run.copy now=$state/$run.now unchanged=$state/$run.unchanged needed=$state/$run.needed
export LC_ALL=C

# Of the entries in the file $1 those that are here: with a third field, what stat says of them.
look() {
  cut -f 1 "$1" | tr '\n' '\0' | xargs -0 -r stat --printf='%n\t%f %s %.9Y %.9Z %i\n' 2>/dev/null |
    sed "s/$tab\(4[0-9a-f]*\) .* \([0-9]*\)\$/$tab\1 \2/" | join -t "$tab" "$1" -
}

# Brings the object into the file $1. The token stays off the command line, where every user could see it.
fetch() {
  command -v curl >/dev/null || { echo "there is no curl" >&2; return 1; }
  token=$(curl -sS -f --retry 3 --max-time 10 -H 'Metadata-Flavor: Google' \
    "http://${GCE_METADATA_HOST:-metadata.google.internal}/computeMetadata/v1/instance/service-accounts/default/token" |
    tr -d '\n' | sed -n 's/.*"access_token" *: *"\([^"]*\)".*/\1/p')
  [ -n "$token" ] || { echo "there is no token of a service account" >&2; return 1; }
  printf 'Authorization: Bearer %s\n' "$token" |
    curl -sS -f --retry 5 --connect-timeout 20 --speed-limit 1000 --speed-time 30 -H @- -o "$1" "$object" || return
  [ "$(sha256sum <"$1" | cut -c 1-64)" = "$sum" ] || { echo "other bytes than were sent" >&2; return 1; }
}

# Brings the object into the file $1, or ends.
need() {
  mkdir -p "$state" && fetch "$1" && return
  rm -f "$1"
  exit 75
}

compare() {
  find "$state" -name '*.*' -mtime +2 -delete 2>/dev/null # of runs that were stopped in between
  [ -e "$state/known" ] || : >"$state/known" || return
  look "$wanted" >"$now" && comm -12 "$state/known" "$now" >"$unchanged" &&
    cut -f 1,2 "$unchanged" | comm -13 - "$wanted" >"$needed"
}

listed() {
  if [ -n "$object" ]; then cat "$copy"; else cat; fi
}

ask() {
  [ -z "$object" ] || need "$copy"
  if { mkdir -p "$state" && listed >"$wanted" && compare; } 2>/dev/null; then
    if [ -s "$unchanged" ]; then cut -f 1 "$needed"; else echo all; fi
    [ -s "$needed" ] || rm -f "$unchanged" "$needed"
  else # without notes: the disk may be full
    rm -f "$unchanged" "$needed"
    [ -n "$object" ] || cat >/dev/null
    echo all
  fi
  rm -f "$wanted" "$now" "$copy"
  if command -v zstd >/dev/null; then echo end zstd; else echo end; fi
}

take() {
  archive=-
  if [ -n "$object" ]; then
    need "$copy"
    archive=$copy
  fi
  umask "$mask"
  set --
  if [ "$form" = zst ]; then set -- -I zstd; else set -- -z; fi
  tar "$@" --no-same-owner -xf "$archive"
  status=$?
  rm -f "$copy"
  [ "$status" = 0 ] || exit "$status"
  umask 077
  [ -e "$needed" ] || exit 0
  { look "$needed" | sort - "$unchanged" >"$state/$run.known" && mv "$state/$run.known" "$state/known"; } 2>/dev/null
  rm -f "$unchanged" "$needed"
}

"$step"
