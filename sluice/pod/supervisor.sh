# What runs on a worker's host: sent there over the connection's standard input, so that nothing has to be installed.
# Needs a POSIX sh, GNU coreutils, grep and util-linux's setsid. Before this text stand the settings:
#   mode       start (the worker, if it was not started yet) or attach; `supervise` in the copy that supervises
#   run attempt worker   whose folder on this host it is
#   lease      seconds without a word from the client until the worker is ended; 0: no limit
#   patience   seconds without a heartbeat until the worker counts as hanging; 0: no limit
#   grace      seconds from the first signal to the last when the worker is ended
#   offset     bytes of the worker's log that the client has already
#   script     the text of the worker's own script: environment, folder, command
# The connection writes the worker's log to standard output, and to standard error lines that begin with
# "sluice-worker": up, exit STATUS TIME REASON, lost REASON. It reads orders, one a line: beat, stop INT, stop KILL;
# after `exit` or `lost`: done, which removes the folder.
umask 077
folder="${XDG_STATE_HOME:-$HOME/.local/state}/sluice/workers/$run/$attempt-$worker"

say() { printf 'sluice-worker %s\n' "$*" >&2; }
now() { read -r now _ </proc/uptime && now=${now%.*}; }

# All processes of the worker, also those that left its process group: they carry its heartbeat file in their environment.
worker_processes() {
  grep -lzxF -e "SLUICE_HEARTBEAT_FILE=$folder/heartbeat" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3
}
kill_worker_processes() {
  for process in $(worker_processes); do kill -s KILL "$process" 2>/dev/null; done
}
kill_worker() {
  kill -s KILL -- "-$(cat "$folder/pid")" 2>/dev/null
  kill_worker_processes
}

# end REASON SIGNAL: the first of these decides; SIGTERM and SIGKILL follow.
end() {
  [ -n "$ending" ] && return
  ending=$now last=$2
  echo "$1" >reason
  kill -s "$2" -- "-$(cat pid)" 2>/dev/null
}

# The state and the start time of the process that is numbered $supervisor.
look_at_supervisor() {
  read -r _ _ state _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ begun _ 2>/dev/null <"/proc/$supervisor/stat"
}
# Whether the supervisor runs. One that ended may stay a zombie where nobody waits for orphans, and after the host was
# started again its number may be another's.
supervised() { look_at_supervisor && [ "$state" != Z ] && [ "$begun" = "$since" ]; }
until_unsupervised() { while [ ! -e "$folder/exit" ] && supervised; do sleep 0.2; done; }

look_after_worker() {
  if [ -e stop ] && mv stop order; then # taken in one step: the next may come at any time
    read -r order <order
    end stopped "$order"
    [ "$order" = KILL ] && kill_worker
  fi
  if [ -e beat ]; then
    rm -f beat
    silent=0
  elif [ "$lease" -gt 0 ]; then
    silent=$((silent + 1))
    [ "$silent" -gt $((lease * 5)) ] && end lease INT
  fi
  if [ "$patience" -gt 0 ] && [ -e heartbeat ]; then
    # Another time, be it an earlier one: the host's clock may be set back.
    if [ ! -e seen ] || [ heartbeat -nt seen ] || [ heartbeat -ot seen ]; then
      touch -r heartbeat seen
      still=0
    else
      still=$((still + 1))
      [ "$still" -gt $((patience * 5)) ] && end heartbeat TERM
    fi
  fi
  [ -n "$ending" ] || return
  if [ "$last" = INT ] && [ $((now - ending)) -ge $((grace * 2 / 3)) ]; then
    last=TERM
    kill -s TERM -- "-$(cat pid)" 2>/dev/null
  fi
  [ $((now - ending)) -ge "$grace" ] && kill_worker
}

watch() {
  ending='' last='' silent=0 still=0 now=0
  while [ ! -e ended ] && supervised; do
    sleep 0.2
    now
    [ -s pid ] && look_after_worker
  done
  [ -e ended ] || kill_worker # nobody else will
}

# The watcher is the one in the background: sh lets background processes ignore SIGINT, and the worker must not.
supervise() {
  cd "$folder" || exit 1
  : >beat
  supervisor=$$
  look_at_supervisor
  since=$begun
  echo "$supervisor $since" >supervisor.tmp && mv supervisor.tmp supervisor
  watch &
  SLUICE_HEARTBEAT_FILE="$folder/heartbeat" setsid sh ./worker.sh </dev/null >>log 2>&1
  echo "$? $(date +%s.%N)" >ended.tmp && mv ended.tmp ended
  wait
  # What the worker left running gets a second's time.
  if [ -s pid ] && [ -n "$(worker_processes)" ]; then
    kill -s TERM -- "-$(cat pid)" 2>/dev/null
    for process in $(worker_processes); do kill -s TERM "$process" 2>/dev/null; done
    for _ in 1 2 3 4 5; do [ -n "$(worker_processes)" ] && sleep 0.2; done
    kill_worker
  fi
  echo "$(cat ended) $(cat reason 2>/dev/null || echo exited)" >exit.tmp && mv exit.tmp exit
}

start() {
  for _ in 1 2 3 4 5; do # a worker of the same host that has just ended may remove the run's folder in between
    mkdir -p "${folder%/*}" || { say "lost cannot create ${folder%/*} on this host"; exit 1; }
    mkdir "$folder" 2>/dev/null && break
    [ -e "$folder" ] && return
  done
  [ -e "$folder" ] || { say "lost cannot create $folder on this host"; exit 1; }
  printf '%s\n' "$script" >"$folder/worker.sh"
  printf '%s\n' "$payload" >"$folder/supervisor.sh"
  : >"$folder/log"
  setsid -f sh "$folder/supervisor.sh" supervise </dev/null >"$folder/supervisor.log" 2>&1
}

# Orders of the client, until it is gone.
obey() {
  while IFS= read -r order; do
    case $order in
      beat) : >"$folder/beat" ;;
      'stop '*) echo "${order#stop }" >"$folder/stop.tmp" && mv "$folder/stop.tmp" "$folder/stop" ;;
    esac
  done
  kill "$1" 2>/dev/null
}

# Answers with how the worker ended and waits for the client's word that it has everything, though not for long: the
# client may be behind a connection that died without a word.
report() {
  if [ -e "$folder/exit" ]; then say "exit $(cat "$folder/exit")"; else say "lost $1"; fi
  (for _ in $(seq 50); do sleep 0.2; done; kill $$) </dev/null >/dev/null 2>&1 &
  limit=$!
  while IFS= read -r order; do
    [ "$order" = 'done' ] || continue
    rm -rf "$folder"
    rmdir "${folder%/*}" 2>/dev/null
    break
  done
  kill "$limit"
}

# The worker's log to standard output: all there is, and what comes until it has ended.
follow_log() {
  if [ -e "$folder/exit" ] || ! supervised; then
    tail -c "+$((offset + 1))" "$folder/log"
    return
  fi
  exec 3<&0
  until_unsupervised >/dev/null 2>&1 3<&- &
  tail -c "+$((offset + 1))" -f -s 0.2 --pid=$! "$folder/log" 3<&- &
  tail=$!
  obey "$tail" <&3 >/dev/null 2>&1 3<&- &
  obey=$!
  wait "$tail"
  kill "$obey" 2>/dev/null
  wait "$obey" 2>/dev/null # else it could still take the last order, or write into the folder while that is removed
  [ -e "$folder/exit" ] || ! supervised || exit 1 # the client is gone
}

connect() {
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    [ -e "$folder/supervisor" ] || sleep 0.1
  done
  if [ ! -e "$folder/supervisor" ]; then
    reason=$(tail -n 1 "$folder/supervisor.log" 2>&1)
    report "it is not known on this host ($folder): ${reason:-its supervisor has not begun within 2 s and says nothing; is the host overloaded, or its disk full?}"
    return
  fi
  read -r supervisor since <"$folder/supervisor"
  say up
  follow_log
  [ -e "$folder/exit" ] || kill_worker_processes # by their marks: the numbers may be others' by now
  report "its supervisor was killed (out of memory, or the host was started again)"
}

case "${1:-$mode}" in
  supervise) supervise ;;
  start) start; connect ;;
  attach) connect ;;
esac
