#!/usr/bin/env bash
# slurm_test.sh PRINT_PLACEMENT SLUICE: programs under a real Slurm (munge, slurmctld and two slurmd of this machine, with
# settings and ports of their own) find their places by themselves. Needs root and Debian's packages slurm-wlm and
# munge; status 77: they are not there.
set -euo pipefail
program=$(realpath "$1")
sluice=$(realpath "$2")
if ((EUID != 0)); then
  echo "skipped: Slurm's daemons need root"
  exit 77
fi
for daemon in munged slurmctld slurmd srun; do
  if ! command -v "$daemon" >/dev/null; then
    echo "skipped: $daemon is not installed: apt-get install slurm-wlm munge"
    exit 77
  fi
done

work=$(mktemp -d /tmp/sluice-slurm-XXXXXX)
daemons=()
stop_all() {
  for daemon in "${daemons[@]}"; do kill "$daemon" 2>/dev/null || true; done
  for daemon in "${daemons[@]}"; do wait "$daemon" 2>/dev/null || true; done
  rm -rf "$work"
}
trap stop_all EXIT
fail() {
  printf 'FAILED: %s\n' "$*" >&2
  tail -n 5 "$work"/*.log >&2
  exit 1
}
wait_for() {  # WHAT COMMAND…
  local what=$1
  shift
  for _ in $(seq 300); do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.1
  done
  fail "waited 30 s for $what"
}
free_port() {
  /usr/bin/env python3 -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])'
}

chmod 755 "$work"
head -c 1024 /dev/urandom >"$work/munge.key"
chmod 400 "$work/munge.key"
munged --foreground --force --key-file "$work/munge.key" --socket "$work/munge.socket" --pid-file "$work/munge.pid" \
  --log-file "$work/munge.log" --seed-file "$work/munge.seed" >/dev/null 2>&1 &
daemons+=($!)
wait_for munge munge -n -S "$work/munge.socket"

host=$(hostname -s)
mkdir "$work/state"
cat >"$work/slurm.conf" <<END
ClusterName=sluice
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmctldPort=$(free_port)
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
SelectType=select/cons_tres
SlurmdParameters=config_overrides
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool-%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd-%n.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd-%n.log
SwitchType=switch/none
NodeName=unit01 NodeHostname=$host NodeAddr=127.0.0.1 Port=$(free_port) CPUs=2
NodeName=unit02 NodeHostname=$host NodeAddr=127.0.0.1 Port=$(free_port) CPUs=2
PartitionName=all Nodes=ALL Default=YES State=UP
END
export SLURM_CONF=$work/slurm.conf
slurmctld -D >"$work/controller.log" 2>&1 &
daemons+=($!)
for node in unit01 unit02; do
  mkdir "$work/spool-$node"
  slurmd -D -N "$node" >"$work/daemon-$node.log" 2>&1 &
  daemons+=($!)
done
all_idle() { [[ $(sinfo -h -t idle -o %D) == 2 ]]; }
wait_for "two idle nodes" all_idle

# Four tasks on two nodes: each has its number, all meet at the first node's name on one port.
srun -N 2 -n 4 "$program" >"$work/out" 2>"$work/err" || fail "srun: $(cat "$work/err")"
cat "$work/out"
for task in 0 1 2 3; do
  grep -qE "^process $task of 4, meeting at unit01:6[0-9]{4} \(Slurm\)$" "$work/out" || fail "no process $task of 4"
done
[[ $(sed 's/.*meeting at//' "$work/out" | sort -u | wc -l) == 1 ]] || fail "they meet in different places"

# Two steps of one job at once meet in two places, and a step may be smaller than its job.
cat >"$work/steps.sh" <<END
#!/bin/sh
srun --exact -n 2 "$program" >"$work/step0" &
srun --exact -n 2 "$program" >"$work/step1" &
wait
END
sbatch -W -n 4 -o "$work/batch" "$work/steps.sh" >/dev/null || fail "sbatch: $(cat "$work/batch")"
cat "$work/step0" "$work/step1"
[[ $(cat "$work/step0" "$work/step1" | grep -c 'of 2, meeting') == 4 ]] || fail "two steps of two tasks"
[[ $(cat "$work/step0" "$work/step1" | sed 's/.*meeting at//' | sort -u | wc -l) == 2 ]] || fail "the steps meet"

# A job script that forgets srun would wait for the others for ever.
printf '#!/bin/sh\nexec "%s"\n' "$program" >"$work/forgot.sh"
if sbatch -W -n 4 -o "$work/forgot" "$work/forgot.sh" >/dev/null; then fail "it went unnoticed that srun is missing"; fi
cat "$work/forgot"
grep -q 'the job has 4 tasks, but .*srun PROGRAM' "$work/forgot" || fail "the message does not help"

# A shell inside an allocation is a single process.
salloc -n 4 "$program" >"$work/alone" 2>"$work/err" || fail "salloc: $(cat "$work/err")"
grep -qx 'a single process' "$work/alone" || fail "salloc: $(cat "$work/alone")"

# The script that `sluice run --sbatch` writes: a set-up on each node, all tasks, and a second attempt of all.
cd "$work"
"$sluice" run --sbatch --nodes 2 --processes-per-host 2 --name four --max-restarts 1 --env "WORDS=it's here" \
  --setup 'echo "set up on $SLURMD_NODENAME"' -- sh -c "echo \"\$WORDS\"; $program; exit \$((SLUICE_RESTART == 0 ? 3 : 0))" >"$work/four.sh"
sbatch -W "$work/four.sh" >/dev/null || fail "sbatch of sluice run --sbatch: $(cat "$work"/four-*.log)"
cat "$work"/four-*.log
[[ $(grep -cE '^[01]: set up on unit0[12]$' "$work"/four-*.log) == 2 && $(grep 'set up' "$work"/four-*.log | sort -u -k5,5 | wc -l) == 2 ]] ||
  fail "the set-up runs once on each node"
[[ $(grep -c "it's here$" "$work"/four-*.log) -ge 5 ]] || fail "two attempts with the variable"
for task in 0 1 2 3; do
  grep -q "process $task of 4, meeting at unit01" "$work"/four-*.log || fail "no process $task of 4"
done
grep -q 'attempt 0 ended with status 3; starting all workers again' "$work"/four-*.log || fail "no second attempt"

# A worker that fails ends the other, and both start again; the lines have their worker's number, and the folder and the
# variables are those of the command line. The job fails when the restarts are used up.
mkdir "$work/a folder"
"$sluice" run --sbatch --nodes 2 --name two --max-restarts 1 --chdir "$work/a folder" --env 'WORDS=a "b" $c' -- sh -c '
  echo "$SLURM_PROCID of $SLURM_NTASKS in $PWD, attempt $SLUICE_RESTART: $WORDS"
  [ "$SLURM_PROCID" = 1 ] && sleep 1 && exit 5; exec sleep 1000' >"$work/two.sh"
if sbatch -W "$work/two.sh" >/dev/null; then fail "the job of a worker that fails succeeds"; fi
cat "$work"/two-*.log
for task in 0 1; do
  for attempt in 0 1; do
    grep -qxF "$task: $task of 2 in $work/a folder, attempt $attempt: a \"b\" \$c" "$work"/two-*.log ||
      fail "no line of task $task, attempt $attempt"
  done
done
[[ $(grep -c 'task 1: Exited with exit code 5' "$work"/two-*.log) == 2 ]] || fail "it is not said which worker failed"

# Told to end, by scancel or as before the time limit, all workers get SIGTERM, may save, and are not started again.
for how in "scancel" "scancel --batch --signal=TERM"; do
  rm -f "$work"/saved-*
  "$sluice" run --sbatch --nodes 2 --name ended --max-restarts 3 -- sh -c '
    trap "echo saved >'"$work"'/saved-$SLURM_PROCID; exit 143" TERM
    echo ready; while :; do sleep 0.1; done' >"$work/ended.sh"
  job=$(sbatch --parsable "$work/ended.sh")
  all_ready() { [[ $(grep -c ready "$work/ended-$job.log") == 2 ]]; }
  wait_for "two tasks of $how" all_ready
  $how "$job"
  job_is_over() { [[ $(squeue -h -j "$job" -o %T) == "" ]] || [[ $(squeue -h -t all -j "$job" -o %T) =~ CANCELLED|FAILED|COMPLETED ]]; }
  wait_for "the end of the job after $how" job_is_over
  cat "$work/ended-$job.log"
  [[ -e $work/saved-0 && -e $work/saved-1 ]] || fail "$how: the workers could not save"
  if grep -q 'again' "$work/ended-$job.log"; then fail "$how: the workers were started again"; fi
done
if pgrep -f "$work/saved-" >/dev/null; then fail "a worker is left"; fi
echo passed
