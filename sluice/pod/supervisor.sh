# What runs on a worker's host: sent there over the connection's standard input, so that nothing has to be installed.
# Needs a POSIX sh, GNU coreutils, grep and util-linux's setsid. Before this text stand the settings:
#   mode       start (the worker, if it was not started yet) or attach; `supervise` in the copy that supervises
#   run attempt worker   whose folder on this host it is
#   lease      seconds without a word from the client until the worker is ended; 0: no limit
#   patience   seconds without a heartbeat until the worker counts as hanging; 0: no limit
#   grace      seconds from the first signal to the last when the worker is ended
#   offset     bytes of the worker's log that the client has already
#   space      bytes of this host's disk that the worker's log may take; 0: no limit
#   port       at which the workers will meet on this host; 0: not here
#   clock      1: say this host's time, too
#   keeper     the text of keeper.pl
#   script     the text of the worker's own script: environment, folder, command
# The connection writes the worker's log to standard output, and to standard error lines that begin with
# "sluice-worker": up [CLOCK], note TEXT, exit STATUS TIME REASON [CLOCK], lost REASON; before `up`: from OFFSET, if the
# log's bytes before that one are gone. It reads orders, one a line: beat, stop INT, stop KILL; have OFFSET, when the client
# has the log's bytes before that one; after `exit` or `lost`: done, which removes the folder.
#
# The processes, each of which may be killed without the worker being forgotten:
#   keeper      if there is perl: waits for the supervisor, and kills what that left
#   supervisor  waits for the worker; as the nearest subreaper it is left all of the worker's orphans
#   watcher     waits for orders and ticks, and ends the worker
#   ticker      ticks for the watcher, and looks after it
# Orders and ticks come by a pipe, `orders`, so that nobody has to look at the clock or to write a file. `alive` is a pipe
# that the supervisor keeps open: who reads it learns of its end. What has to be written later has its place in the
# worker's folder from the beginning: the disk may be full by then.
umask 077
folder="${XDG_STATE_HOME:-$HOME/.local/state}/sluice/workers/$run/$attempt-$worker"
chips='/dev/(accel|vfio/)[0-9]+$'

say() { printf 'sluice-worker %s\n' "$*" >&2; }
now() { read -r now _ </proc/uptime && now=${now%.*}; }
# With this host's time behind it, if the client wants that.
say_timed() { if [ "$clock" = 1 ]; then date "+sluice-worker $* %s.%N" >&2; else say "$*"; fi; }
# put NAME TEXT: over the beginning of a file that has room for it, so that the text is its first line.
put() { echo "$2" 2>/dev/null 1<>"$1"; }
# The same, complete or not there at all.
put_whole() { put "$1.tmp" "$2" && mv "$1.tmp" "$1"; }

# Whether a process below the supervisor is the worker's: it is none that looks after the worker, as those have the
# supervisor's session, which nobody can join; and no zombie.
is_workers() {
  line=''
  read -r line 2>/dev/null <"/proc/$1/stat"
  set -- ${line##*) }
  [ "${1:-Z}" != Z ] && [ "$4" != "$session" ]
}

# Sets `left` to the processes of the worker, also those that left its process group. Where the supervisor is a
# subreaper, these are all that are below it; else those that carry the heartbeat file in their environment.
find_left() {
  left=''
  if [ -z "$contained" ]; then
    left=$(grep -lzxF -e "SLUICE_HEARTBEAT_FILE=$folder/heartbeat" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3)
    return
  fi
  above=$supervisor
  while [ -n "$above" ]; do
    below=''
    for process in $above; do
      for list in "/proc/$process/task"/*/children; do
        children=''
        read -r children 2>/dev/null <"$list"
        for child in $children; do
          is_workers "$child" && below="$below $child"
        done
      done
    done
    above=$below
    left="$left$below"
  done
}
signal_left() {
  for process in $left; do kill -s "$1" "$process" 2>/dev/null; done
}
# To the worker's process group; fails as long as there is none.
signal_worker() {
  read -r group 2>/dev/null <"$folder/pid"
  [ -n "$group" ] && kill -s "$1" -- "-$group" 2>/dev/null
}
kill_worker() {
  signal_worker KILL
  find_left
  signal_left KILL
}

# The state, the session and the start time of the process that is numbered $supervisor.
look_at_supervisor() {
  read -r _ _ state _ _ session _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ begun _ 2>/dev/null <"/proc/$supervisor/stat"
}
# Whether the supervisor runs. One that ended may stay a zombie where nobody waits for orphans.
supervised() { look_at_supervisor && [ "$state" != Z ] && [ "$begun" = "$since" ]; }
# Of this very shell: $$ is its parent's number.
number_of_this() { read -r this _ </proc/self/stat; }

# end REASON SIGNAL: the first of these decides; SIGTERM and SIGKILL follow.
end() {
  [ -n "$ending" ] && return
  now
  ending=$now last=$2
  put reason "$1"
  signal_worker "$last" && sent=1
  (exec 4>orders; while :; do sleep 0.2 4>&-; echo tick >&4; done) 3<&- &
  quick=$!
}
# With the sleep that it waits for.
kill_ticker() {
  children=''
  read -r children 2>/dev/null <"/proc/$1/task/$1/children"
  kill -s KILL "$1" $children 2>/dev/null
}
# Sets `freed` to the number of bytes at the log's beginning that are gone from it.
look_at_freed() {
  freed=''
  read -r freed _ 2>/dev/null <"$folder/freed"
  freed=${freed:-0}
}
# Remembers a full disk, which may have cost the worker's output. Comes before anything is freed, so none is missed.
look_at_disk() {
  set -- $(stat -f -c %a "$folder" 2>/dev/null)
  [ "${1:-100}" -gt 4 ] || put "$folder/full" 1
}
# free_log END: the disk gets the log's bytes before END back. Places in the log stay, and the worker may write meanwhile.
free_log() {
  look_at_freed
  [ "$1" -gt "$freed" ] || return
  look_at_disk
  put "$folder/freed" "$1"
  [ -z "$2" ] || end_readers # else they would read zeros
  fallocate -p -o 0 -l "$1" "$folder/log" 2>/dev/null && return
  put "$folder/freed" "$freed"
  : >"$folder/untrimmed"
}
# The connections that follow the log: their clients connect again, and learn from where on they can have it.
end_readers() {
  for reader in "$folder"/reader-*; do
    read -r number 2>/dev/null <"$reader" || continue
    grep -qzxF -e "$folder/log" "/proc/$number/cmdline" 2>/dev/null && kill "$number"
    rm -f "$reader"
  done
}
# No client has fetched the log's beginning in time: half of what may be there stays.
bound_log() {
  [ "$space" -gt 0 ] || return
  set -- $(stat -c '%b %B %s' "$folder/log" 2>/dev/null)
  [ $((${1:-0} * ${2:-0})) -le "$space" ] || free_log $(($3 - space / 2)) unread
}

# The supervisor is gone, and with it the knowledge of what is below it.
abandon() {
  contained=''
  kill_worker
  [ -z "$quick" ] || kill_ticker "$quick"
  exit
}

# Once a tick: `length` seconds.
look_after_worker() {
  silent=$((silent + length))
  [ "$lease" -gt 0 ] && [ "$silent" -gt "$lease" ] && end lease INT
  if [ "$patience" -gt 0 ] && [ -e heartbeat ]; then
    # Another time, be it an earlier one: the host's clock may be set back.
    if [ heartbeat -nt seen ] || [ heartbeat -ot seen ]; then
      touch -r heartbeat seen
      still=0
    else
      still=$((still + length))
      [ "$still" -gt "$patience" ] && end heartbeat TERM
    fi
  fi
  bound_log
  supervised || abandon # nobody else will end the worker
}

go_on_ending() {
  now
  supervised || abandon
  if [ -z "$sent" ]; then # the worker had no process group yet
    signal_worker "$last" && sent=1
  fi
  if [ "$last" = INT ] && [ $((now - ending)) -ge $((grace * 2 / 3)) ]; then
    last=TERM
    signal_worker TERM
  fi
  if [ "$last" = KILL ] || [ $((now - ending)) -ge "$grace" ]; then kill_worker; fi
}

# The watcher is one in the background: sh lets background processes ignore SIGINT, and the worker must not.
watch() {
  number_of_this
  watcher=$this
  ending='' last='' sent='' quick='' silent=0 still=0
  exec 3<orders # waits for the ticker
  put_whole supervisor "$supervisor $since $watcher $ticker"
  while IFS= read -r event <&3; do
    case $event in
      beat)
        silent=0
        # The supervisor ends the ticker itself when the worker has ended, before this may have come to its word.
        kill -0 "$ticker" 2>/dev/null || [ -e ended ] || end unwatched KILL
        ;;
      'stop KILL')
        end stopped KILL
        last=KILL
        kill_worker
        ;;
      'stop '*) end stopped "${event#stop }" ;;
      look) look_after_worker ;;
      tick) go_on_ending ;;
      over)
        [ -z "$quick" ] || kill_ticker "$quick"
        exit
        ;;
    esac
  done
  # The pipe has no writer: the ticker was killed.
  [ -e ended ] || put reason unwatched
  while supervised && [ ! -e ended ]; do kill_worker; sleep 0.2; done
  supervised || abandon
}

tick() {
  trap '' PIPE
  number_of_this
  ticker=$this watcher=''
  exec 4>orders # waits for the watcher
  while [ -z "$watcher" ] || kill -0 "$watcher" 2>/dev/null; do
    sleep "$length" 4>&-
    [ -n "$watcher" ] || read -r _ _ watcher _ 2>/dev/null <supervisor
    echo look 2>/dev/null >&4
  done
  [ -e ended ] || put reason unwatched # the watcher was killed
  while supervised && [ ! -e ended ]; do kill_worker; sleep 0.2; done
}

# What the worker left running gets a second's time.
end_left() {
  find_left
  [ -n "$left" ] || return
  signal_worker TERM
  signal_left TERM
  for _ in 1 2 3 4 5; do
    sleep 0.2
    find_left
    [ -n "$left" ] || return
  done
  # Children of what is killed are the supervisor's then.
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    kill_worker
    sleep 0.1
    find_left
    [ -n "$left" ] || return
  done
}

# Whom to ask for a chip that a process of this user holds and no worker of a run.
chip_holders() {
  for process in $(find /proc/[0-9]*/fd -lname '/dev/*' -printf '%p %l\n' 2>/dev/null | grep -E "$chips" |
      cut -d/ -f3 | sort -un); do
    grep -qz '^SLUICE_HEARTBEAT_FILE=' "/proc/$process/environ" 2>/dev/null && continue
    echo "process $process ($(tr '\0' ' ' <"/proc/$process/cmdline" | cut -c 1-60)) still holds a chip"
  done
}

supervise() {
  cd "$folder" || exit 1
  supervisor=$$ contained=''
  [ "$1" = contained ] && [ -r "/proc/$$/task/$$/children" ] && contained=1
  [ -n "$contained" ] || : >uncontained
  look_at_supervisor
  since=$begun
  # The limits in ten steps, or at least every five seconds.
  length=5
  for limit in "$lease" "$patience"; do
    [ "$limit" -gt 0 ] && [ $((limit / 10)) -lt "$length" ] && length=$((limit / 10))
  done
  [ "$length" -gt 0 ] || length=1
  tick 7>&- &
  ticker=$!
  watch 7>&- &
  watcher=$!
  SLUICE_HEARTBEAT_FILE="$folder/heartbeat" setsid sh ./worker.sh </dev/null >>log 2>&1 7>&-
  put_whole ended "$? $(date +%s.%N)"
  exec 3<>orders # until the watcher has read the word, which may begin only now
  echo over >&3
  kill_ticker "$ticker"
  wait
  exec 3>&-
  end_left
  [ -n "$contained" ] || chip_holders >holders
  read -r ended <ended
  read -r reason <reason
  put_whole exit "$ended ${reason:-exited}"
}

# start: the worker's folder, with room for what will be written there, and the supervisor. The connection has the pipe
# `alive` open before, so that it cannot miss the supervisor's end.
# Processes are what a start costs, most of all where many begin on one machine: this has few of them.
make_folder() {
  for _ in 1 2 3 4 5; do # a worker of the same host that has just ended may remove the run's folder in between
    mkdir -p "$folder" 2>/dev/null || continue
    set -C # whoever makes the log starts the worker
    { true >"$folder/log"; } 2>/dev/null && made=1
    set +C
    [ -z "$made" ] || return 0
    [ -e "$folder/log" ] && return 1
  done
  say "lost cannot create $folder/log on this host: $({ mkdir -p "$folder" && true >"$folder/log"; } 2>&1)"
  rmdir "$folder" "${folder%/*}" 2>/dev/null
  exit 1
}
fill_folder() {
  room='                    '
  room="$room$room$room$room$room"
  for name in pid reason freed full supervisor.tmp ended.tmp exit.tmp; do echo "$room" >"$folder/$name" || return; done
  printf '%s\n' "$script" >"$folder/worker.sh" && printf '%s\n' "$payload" >"$folder/supervisor.sh" &&
    true >"$folder/seen" && echo "$port" >"$folder/port" && mkfifo "$folder/orders" "$folder/alive"
}
start() {
  make_folder || return
  [ "$port" = 0 ] || look_at_port
  fill_folder 2>/dev/null || {
    reason=$(fill_folder 2>&1 | tail -n 1)
    rm -rf "$folder"
    say "lost cannot write in $folder on this host (is its disk full?): $reason"
    exit 1
  }
  exec 5<>"$folder/alive"
  set -- sh "$folder/supervisor.sh" supervise
  if command -v perl >/dev/null; then
    perl -e "$keeper" "$@" </dev/null >"$folder/supervisor.log" 2>&1 7<&5 5>&- &
  else
    setsid -f "$@" </dev/null >"$folder/supervisor.log" 2>&1 7<&5 5>&-
  fi
  started=1
}

# Others that meet at this port: of this user's runs, and whoever listens there.
look_at_port() {
  for other in "${folder%/*/*}"/*/*/port; do
    [ "${other%/*/port}" = "${folder%/*}" ] && continue
    read -r taken 2>/dev/null <"$other" && [ "$taken" = "$port" ] || continue
    read -r supervisor since _ 2>/dev/null <"${other%port}supervisor" && supervised || continue
    other=${other%/*/port}
    say "note port $port run ${other##*/}"
    return
  done
  grep -qE "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$port") [0-9A-F]+:0000 0A" /proc/net/tcp /proc/net/tcp6 2>/dev/null &&
    say "note port $port"
}

# Orders of the client, until it is gone. With the pipe open here nothing is lost before the watcher has opened it.
obey() {
  exec 4<>"$folder/orders"
  while IFS= read -r order; do
    case $order in
      beat | 'stop '*) echo "$order" >&4 ;;
      'have '*[!0-9]*) ;;
      'have '?*) free_log "${order#have }" ;;
    esac
  done
  kill "$1" 2>/dev/null
}

# Answers with how the worker ended and waits for the client's word that it has everything, though not for long: the
# client may be behind a connection that died without a word.
report() {
  [ -e "$folder/uncontained" ] && say "note uncontained"
  [ -e "$folder/untrimmed" ] && say "note untrimmed"
  if [ -s "$folder/holders" ]; then say "note $(head -n 1 "$folder/holders")"; fi
  full=''
  look_at_disk
  read -r full 2>/dev/null <"$folder/full"
  [ -z "$full" ] || say "note full $folder"
  if read -r ended 2>/dev/null <"$folder/exit"; then say_timed "exit $ended"; else say "lost $1"; fi
  sleep 10 </dev/null >/dev/null 2>&1 &
  limit=$!
  exec 3<&0
  (while IFS= read -r order; do
    [ "$order" = 'done' ] || continue
    rm -rf "$folder"
    rmdir "${folder%/*}" 2>/dev/null
    break
  done
  kill "$limit") <&3 3<&- >/dev/null 2>&1 &
  farewell=$!
  wait "$limit"
  kill "$farewell" 2>/dev/null
}

# The worker's log to standard output: all there is, and what comes until its supervisor has ended.
# The connection ends without a report when the client is gone, or when it was so slow that it has to begin elsewhere.
follow_log() {
  exec 6<"$folder/alive" 5>&- # which has a writer now: this shell until here, and the supervisor
  exec 3<&0
  read -r _ <&6 3<&- &
  supervision=$!
  tail -c "+$((offset + 1))" -f -s 0.1 --pid="$supervision" "$folder/log" 3<&- 6<&- &
  tail=$!
  echo "$tail" 2>/dev/null >"$folder/reader-$$"
  look_at_freed
  [ "$freed" -le "$offset" ] || kill "$tail" # before it was noted
  obey "$tail" <&3 >/dev/null 2>&1 3<&- 6<&- &
  obey=$!
  exec 6<&-
  wait "$tail" 2>/dev/null
  ended=$?
  kill "$obey" 2>/dev/null
  wait "$obey" 2>/dev/null # else it could still take the last order, or write into the folder while that is removed
  rm -f "$folder/reader-$$"
  kill "$supervision" 2>/dev/null && ! [ -e "$folder/exit" ] && exit 1
  [ "$ended" -lt 128 ] || exit 1
}

# There is no such worker, or its supervisor has not come up.
unknown() {
  reason=$(tail -n 1 "$folder/supervisor.log" 2>&1)
  report "it is not known on this host ($folder): ${reason:-its supervisor has not begun and says nothing; is the host overloaded, or its disk full?}"
}

connect() {
  if [ -z "$started" ]; then
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
      [ -e "$folder/supervisor" ] || sleep 0.1
    done
    if [ ! -e "$folder/supervisor" ]; then
      unknown
      return
    fi
    exec 5<>"$folder/alive"
  fi
  look_at_freed
  if [ "$freed" -gt "$offset" ]; then
    offset=$freed
    say "from $offset"
  fi
  say_timed up
  follow_log
  if [ ! -e "$folder/supervisor" ]; then
    unknown
    return
  fi
  contained=''
  [ -e "$folder/exit" ] || { find_left; signal_left KILL; } # by their marks: the numbers may be others' by now
  report "its supervisor was killed (out of memory, or the host was started again)"
}

started='' made=''
case "${1:-$mode}" in
  supervise) supervise "$2" ;;
  start) start; connect ;;
  attach) connect ;;
esac
