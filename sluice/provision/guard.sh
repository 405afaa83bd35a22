# The timer on worker 0 of a TPU: deletes the TPU when its time is over or nobody has used it for long, whether or not
# anybody's client still runs. It comes over ssh, or as the machine's startup script. Needs a POSIX sh, GNU coreutils,
# findutils, grep and curl; and a service account of the machine that may delete the TPU. Before this text stand the
# settings:
#   mode      start (over ssh), boot (the startup script: on worker 0 alone), stop; `watch` in the copy that watches
#   project   for the question what the service account may do
#   node      projects/P/locations/Z/nodes/N
#   queued    projects/P/locations/Z/queuedResources/Q that the node came from, or nothing
#   deadline  seconds since 1970; 0: none. That of the startup script moves with the metadata entry sluice-deadline
#   idle      seconds without a process on a chip and without a supervisor of `sluice run`; 0: none
#   speed     how fast time passes: 1
#   tpu projects metadata   base URLs of the services
# Answers on standard error, a line each: sluice-guard up; sluice-guard lacks PERMISSION WHO; sluice-guard unknown WHY.
umask 077
folder="${XDG_STATE_HOME:-${HOME:-/root}/.local/state}/sluice/guard"

say() { printf 'sluice-guard %s\n' "$*" >&2; }
note() { printf '%s %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$*"; }
# ask_metadata ENTRY [curl's arguments…]
ask_metadata() {
  entry=$1 && shift
  curl -sf --max-time 20 "$@" -H 'Metadata-Flavor: Google' "$metadata/computeMetadata/v1/instance/$entry"
}
# Where users are not root, only root sees who holds a chip.
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; elif sudo -n true 2>/dev/null; then sudo -n "$@"; else "$@"; fi; }

# now: seconds since 1970, as fast as `speed` says.
look_at_clock() { now=$((begun + ($(date +%s%3N) - begun * 1000) * speed / 1000)); }

# call METHOD URL [BODY]: the answer's body, and its status in $folder/status. The token goes through a pipe: an
# argument could be read by every user of the machine.
call() {
  token=$(ask_metadata service-accounts/default/token | sed -n 's/.*"access_token" *: *"\([^"]*\)".*/\1/p')
  [ -n "$token" ] || { echo 000 >"$folder/status"; return 1; }
  printf 'Authorization: Bearer %s\n' "$token" |
    curl -s --max-time 60 -X "$1" -H @- -H 'Content-Type: application/json' ${3:+-d "$3"} \
      -o "$folder/answer" -w '%{http_code}\n' "$2" >"$folder/status" || return 1
  cat "$folder/answer"
  case $(cat "$folder/status") in 2*) ;; *) return 1 ;; esac
}

# Whether the machine's account may do what this script is for.
look_at_permission() {
  who=$(ask_metadata service-accounts/default/email) || { say "unknown no service account at $metadata"; return; }
  answer=$(call POST "$projects/v3/projects/$project:testIamPermissions" \
    '{"permissions": ["tpu.nodes.delete", "tpu.queuedResources.delete"]}')
  case $? in
    0)
      case ${queued:+$answer} in '' | *tpu.queuedResources.delete*) ;; *) say "lacks tpu.queuedResources.delete $who" ;; esac
      case $answer in *tpu.nodes.delete*) ;; *) say "lacks tpu.nodes.delete $who" ;; esac
      ;;
    *) say "unknown status $(cat "$folder/status") when asked what $who may do" ;;
  esac
}

is_used() {
  as_root find /proc/[0-9]*/fd -maxdepth 1 \( -lname '*/dev/accel[0-9]*' -o -lname '*/dev/vfio/[0-9]*' \) 2>/dev/null |
    grep -q . && return
  # The supervisor's own words, so that an editor with that file open does not count.
  grep -lzx supervise /proc/[0-9]*/cmdline 2>/dev/null | while read -r path; do
    grep -qz 'sluice/workers/.*/supervisor\.sh$' "$path" 2>/dev/null && echo "$path"
  done | grep -q .
}

# The queue's entry holds the node and quota: both go with it. An account that may not do that may delete the node.
delete_slice() {
  note "deleting $node: $1"
  if [ -n "$queued" ]; then
    call DELETE "$tpu/v2/$queued?force=true" >/dev/null && return
    note "the queue's entry: status $(cat "$folder/status")"
  fi
  call DELETE "$tpu/v2/$node" >/dev/null || note "the node: status $(cat "$folder/status"), trying again"
}

# Fails where it is not known: only 404 says that there is no such entry.
look_at_deadline() {
  status=$(ask_metadata attributes/sluice-deadline --retry 3 -o "$folder/deadline" -w '%{http_code}')
  case $status in
    200) new=$(cat "$folder/deadline") ;;
    404) return 0 ;;
    *) return 1 ;;
  esac
  case $new in '' | *[!0-9]* | "$deadline") return 0 ;; esac
  deadline=$new
  note "the deadline is $deadline now"
}

watch() {
  begun=$(date +%s)
  look_at_clock
  used=$now
  note "watching $node: deadline $deadline, idle $idle"
  while :; do
    sleep "$pause"
    look_at_clock
    # Without an answer the end may have moved.
    if [ "$mode" = boot ]; then look_at_deadline || continue; fi
    [ "$idle" -gt 0 ] && is_used && used=$now
    if [ "$deadline" -gt 0 ] && [ "$now" -ge "$deadline" ]; then
      delete_slice "its time is over"
    elif [ "$idle" -gt 0 ] && [ $((now - used)) -ge "$idle" ]; then
      delete_slice "nobody has used it for $((now - used)) s"
    fi
  done
}

# One timer a machine: the last settings count.
end_earlier_one() {
  [ -s "$folder/pid" ] || return 0
  pid=$(cat "$folder/pid")
  grep -qz 'sluice/guard/guard\.sh$' "/proc/$pid/cmdline" 2>/dev/null && kill "$pid" 2>/dev/null
  rm -f "$folder/pid"
}

start() {
  if [ "$idle" -gt 0 ] && [ "$(id -u)" != 0 ] && ! sudo -n true 2>/dev/null; then
    say "lost no sudo there: other users' processes are not seen, so that nobody can tell whether it is idle"
    exit 1
  fi
  mkdir -p "$folder" || { say "lost cannot create $folder"; exit 1; }
  end_earlier_one
  printf '%s\n' "$payload" >"$folder/guard.sh"
  setsid -f sh "$folder/guard.sh" watch </dev/null >>"$folder/log" 2>&1
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    [ -s "$folder/pid" ] && break
    sleep 0.1
  done
  [ -s "$folder/pid" ] || { say "lost it has not begun: $(tail -n 1 "$folder/log")"; exit 1; }
  command -v curl >/dev/null || { say "unknown curl is not installed there"; exit 1; }
  look_at_permission
  say up
}

case "${1:-$mode}" in
  watch)
    echo $$ >"$folder/pid"
    pause=$(awk "BEGIN { print ($speed > 1 ? 0.2 : 20) }")
    watch
    ;;
  start) start ;;
  boot)
    number=$(ask_metadata attributes/agent-worker-number) || number=0
    [ "${number:-0}" = 0 ] || exit 0
    payload=$(cat "$0")
    start
    ;;
  stop) end_earlier_one; rm -rf "$folder" ;;
esac
