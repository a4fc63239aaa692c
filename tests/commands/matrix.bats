load ../helper

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
  "$HEAPTAPE_PROGRAMS/make_workload" a.htw churn 1 2000 >/dev/null
  "$HEAPTAPE_PROGRAMS/make_workload" "b 'quoted'.htw" churn 2 1000 >/dev/null
}

teardown() {
  show_failure
  # The daemons write into the directory until they exit.
  for daemon in "${daemons[@]}"; do kill "$daemon" 2>/dev/null || true; done
  for daemon in "${daemons[@]}"; do timeout 10 tail -s 0.1 --pid="$daemon" -f /dev/null || kill -9 "$daemon" || true; done
}

# matrix OPTION...: runs a matrix on glibc with two values of a tunable.
matrix() {
  heaptape matrix --replay-option=--no-latency --sweep MALLOC_ARENA_MAX=1,2 "$@"
}

# is_complete DIR: DIR contains the results of two workloads, two values and two runs.
is_complete() {
  expect "status 0" [ "$status" -eq 0 ]
  [ "$(find "$1" -name '[0-9]*.json' | wc -l)" -eq 8 ]
  [ "$(find "$1" | wc -l)" -eq 10 ] # no files but the folder and the list
  [ "$(grep -c '^wall time' <<<"$output")" -eq 2 ]
  [ "$(grep -c '^glibc,MALLOC_ARENA_MAX=1 .* 2  *2 ' <<<"$output")" -ge 4 ]
  has "$output" "/a.htw"
  has "$output" "/b 'quoted'.htw"
  has "$output" "8 jobs done, 0 failed, 0 not run"
}

@test "matrix: each workload on each allocator in turn; finished jobs are not repeated" {
  matrix -r 2 -w a.htw -w "b 'quoted'.htw" m
  is_complete m
  cut -f 2,3 m/jobs | sed "s|$PWD/||" >"$BATS_TEST_TMPDIR/list"
  printf '%s\n' "heaptape matrix 1" "--no-latency" >expected
  for _ in 1 2; do
    for workload in a.htw "b 'quoted'.htw"; do
      for arenas in 1 2; do printf '%s\t%s\n' "$workload" "glibc,MALLOC_ARENA_MAX=$arenas"; done
    done
  done >>expected
  diff expected list
  [ "$(jq -r '.allocator.tunables | join(" ")' m/2.json)" = "MALLOC_ARENA_MAX=2" ]
  sha256sum m/*.json >before
  rm m/3.json
  heaptape matrix m
  is_complete m
  has "$stderr" "job 3: 1 of 1"
  grep -v "m/3.json" before | sha256sum -c --quiet
  matrix -q -r 2 -w a.htw -w "b 'quoted'.htw" m
  is_complete m
  [ -z "$stderr" ]
  matrix -r 3 -w a.htw m
  fails_with 1 "m: has other jobs"
}

@test "matrix: failed jobs are listed, and run again on request" {
  heaptape matrix -r 2 -w a.htw -a glibc -a "$PWD/late.so" m
  expect "status 1" [ "$status" -eq 1 ]
  has "$stderr" "job 2 failed: $PWD/a.htw on $PWD/late.so: "
  has "$output" "2 jobs done, 2 failed, 0 not run"
  # A failure is an error, so --quiet does not hide it.
  heaptape matrix -q -r 1 -w a.htw -a "$PWD/late.so" q
  expect "status 1" [ "$status" -eq 1 ]
  fails_with 1 "job 1 failed: $PWD/a.htw on $PWD/late.so: "
  cp "$HEAPTAPE_PROGRAMS/libtest-verify.so" late.so
  heaptape matrix m
  expect "status 1" [ "$status" -eq 1 ]
  has "$output" "2 jobs done, 2 failed, 0 not run"
  heaptape matrix --retry m
  expect "status 0" [ "$status" -eq 0 ]
  has "$output" "4 jobs done, 0 failed, 0 not run"
  [ "$(find m -name '*.err' | wc -l)" -eq 0 ]
}

@test "matrix: results of other machines are mixed only on request" {
  heaptape matrix -q -r 2 -w a.htw m
  [ "$status" -eq 0 ]
  jq '.machine.cpu_model = "another"' m/2.json >other
  cp other m/2.json
  heaptape matrix m
  fails_with 1 "m/2.json: measured on another machine than " "'cpu_model' differs"
  heaptape matrix --across-machines m
  expect "status 0" [ "$status" -eq 0 ]
  [[ "$output" =~ glibc\ +2\ +2\  ]]
  heaptape report --pool m/*.json
  fails_with 1 "measured on another machine"
  heaptape report --pool --across-machines m/*.json
  expect "status 0" [ "$status" -eq 0 ]
}

@test "matrix: possible disturbances of times are reported" {
  heaptape matrix -q -r 2 -w a.htw m
  [ "$status" -eq 0 ]
  for key in . '.machine.cpu_governor = "powersave"' '.machine.cpu_boost = true' '.machine.cores = 2 | .machine.online_cpus = 8'; do
    for i in 1 2; do
      jq '.machine.cpu_governor = "performance" | .machine.cpu_boost = false | .machine.online_cpus = .machine.cores' m/$i.json >$i
      cp $i m/$i.json
    done
    jq "$key" 2 >m/2.json
    heaptape matrix --across-machines m
    expect "status 0" [ "$status" -eq 0 ]
    lines=$(grep -cE "governor is powersave|boost|Runs used 2 of 8 CPUs" <<<"$output") || true
    expect "$key" [ "$lines" -eq "$([ "$key" = . ] && echo 0 || echo 1)" ]
    cp 2 m/2.json
  done
}

@test "matrix: jobs run on the CPUs that their option selects" {
  heaptape matrix -q -r 1 -w a.htw --replay-option=--cpus=0 m
  expect "status 0" [ "$status" -eq 0 ]
  [ "$(jq -c '[.machine.cpus, .machine.cores]' m/1.json)" = '["0",1]' ]
  heaptape replay -q -r 1 --cpus 0,x a.htw
  usage_fails "--cpus: '0,x' is not"
  heaptape replay -q -r 1 --cpus 1023 a.htw
  fails_with 1 "--cpus 1023: heaptape is not allowed to run on these CPUs"
}

only_results() {
  [ "$(find m | wc -l)" -eq $(($(find m -name '[0-9]*.json' | wc -l) + 2)) ]
}

# has_zombie PID: a child process has ended and was not waited for.
has_zombie() {
  ps -o stat= --ppid "$1" | grep -q Z
}

@test "matrix: an interrupted matrix continues" {
  # The replays on this allocator wait for the file `go`, so the signal arrives during job 2.
  cat >waits.c <<'END'
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>
void *__libc_malloc(size_t); void __libc_free(void *); void *__libc_calloc(size_t, size_t); void *__libc_realloc(void *, size_t);
void *malloc(size_t n) { return __libc_malloc(n); }
void free(void *p) { __libc_free(p); }
void *calloc(size_t n, size_t m) { return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return __libc_realloc(p, n); }
__attribute__((constructor)) static void wait_for_go(void)
{
    close(creat("waiting", 0600));
    while (access("go", F_OK) != 0)
        usleep(10000);
}
END
  cc -shared -fPIC -o waits.so waits.c
  "$HEAPTAPE" matrix -r 2 -w a.htw -a glibc -a ./waits.so m >/dev/null 2>&1 3>&- &
  local pid=$!
  wait_until test -e waiting
  kill "$pid"
  wait "$pid" || true
  # Temporary files of running jobs are removed a moment later.
  wait_until only_results
  [ "$(find m -name '*.err' | wc -l)" -eq 0 ]
  [ "$(find m -name '[0-9]*.json' -printf '%f ')" = "1.json " ]
  # A signal between the end of the replay and the next job also ends the matrix.
  rm waiting
  "$HEAPTAPE" matrix m >/dev/null 2>err 3>&- &
  pid=$!
  wait_until test -e waiting
  kill -STOP "$pid"
  touch go
  wait_until has_zombie "$pid"
  kill "$pid"
  kill -CONT "$pid"
  wait "$pid" && false
  has "$(cat err)" "signal 15 stopped the matrix after job 2"
  [ "$(find m -name '[0-9]*.json' | wc -l)" -eq 2 ]
  heaptape matrix m
  expect "status 0" [ "$status" -eq 0 ]
  has "$output" "4 jobs done"
}

@test "matrix: a pipe, device or folder instead of a file is refused at once" {
  local file type
  heaptape matrix -q -r 1 -w a.htw -a glibc good
  for file in jobs 1.json 1.err workload; do
    for type in fifo device folder; do
      rm -rf m w.htw && cp -r good m
      [ "$file" != 1.err ] || rm m/1.json
      if [ "$file" = workload ]; then
        rm m/1.json && sed -i "s|$PWD/a.htw|$PWD/w.htw|" m/jobs && ln -s "$PWD/w.htw" m/workload
      fi
      at=$(realpath -m "m/$file")
      rm -rf "$at"
      case $type in
        fifo) mkfifo "$at" ;;
        device) ln -s /dev/zero "$at" ;;
        folder) mkdir "$at" ;;
      esac
      run --separate-stderr timeout -k 1 120 "$HEAPTAPE" matrix -q m
      if [ "$file" = jobs ] || [ "$file" = 1.json ]; then
        fails_with 1 "$(if [ $type = folder ]; then echo ": is a directory"; else echo ": is not a regular file"; fi)"
      else
        expect "$file, $type: status" [ "$status" -eq 1 ]
        has "$output" "0 jobs done, 1 failed, 0 not run"
      fi
    done
  done
  # The reason of a failed job is its last line, even after a long text.
  rm -rf m && cp -r good m && rm m/1.json
  { head -c 100000 /dev/zero | tr '\0' '\n'; printf 'first\nheaptape: a\e[31mb\n'; } >m/1.err
  heaptape matrix m
  has "$stderr" 'job 1 failed: '"$PWD"'/a.htw on glibc: a\x1b[31mb'
  : >m/1.err
  heaptape matrix m
  has "$stderr" "glibc: it wrote nothing"
}

@test "matrix: the workload of a job is a regular file when it runs" {
  heaptape matrix -q -r 1 -w a.htw -a glibc m
  rm m/1.json a.htw && mkfifo a.htw
  run --separate-stderr timeout -k 1 120 "$HEAPTAPE" matrix --retry m
  expect "status 1" [ "$status" -eq 1 ]
  has "$stderr" "a.htw: is not a regular file"
  [ "$(cat m/1.err)" = "heaptape: $PWD/a.htw: is not a regular file" ]
  # Outputs of a job never follow symbolic links of other users.
  echo kept >victim
  rm a.htw && "$HEAPTAPE_PROGRAMS/make_workload" a.htw churn 1 2000 >/dev/null
  for pid in $(seq $$ $(($$ + 300))); do ln -s "$PWD/victim" "m/.1.$(hostname).$pid.out"; done
  heaptape matrix -q --retry m
  [ "$(cat victim)" = kept ]
}

@test "matrix: usage, and invalid lists" {
  heaptape matrix
  usage_fails "an operand is missing"
  heaptape matrix -a glibc m
  usage_fails "-w is missing"
  heaptape matrix --job 1 -w a.htw m
  usage_fails "--job"
  heaptape matrix -w a.htw --sweep X m
  usage_fails "--sweep X: expected VARIABLE=VALUE,VALUE..."
  heaptape matrix -w a.htw --engine-option=-x m
  usage_fails "--engine-option"
  heaptape matrix -w none.htw m
  fails_with 1 "none.htw: No such file"
  heaptape matrix none
  fails_with 1 "none: No such file"
  mkdir m
  heaptape matrix m
  fails_with 1 "m/jobs: No such file"
  printf 'heaptape matrix 1\njob\ta\n' >m/jobs
  heaptape matrix m
  fails_with 1 "m/jobs: is not a list of jobs, at byte 18"
  printf 'heaptape matrix 2\njob\ta\tb\n' >m/jobs
  heaptape matrix m
  fails_with 1 "m/jobs: expected 'heaptape matrix 1': written by a newer heaptape?"
  head -c 100 /dev/urandom >m/jobs
  heaptape matrix m
  fails_with 1 "m/jobs: is not a list of jobs, at byte 0"
  heaptape matrix -w "$(printf 'a\tb')" other
  fails_with 1
  heaptape matrix -q -r 1 -w a.htw good
  heaptape matrix --job 2 good
  fails_with 1 "good: has jobs 1 to 1"
}

@test "matrix: by GNU parallel" {
  parallel --version 2>/dev/null | grep -q "^GNU parallel" || skip "no GNU parallel"
  mkdir "of 'others'"
  matrix -r 2 -w a.htw -w "b 'quoted'.htw" --engine parallel --engine-option=--jobs --engine-option=2 "of 'others'/m"
  is_complete "of 'others'/m"
  heaptape matrix -r 1 -w a.htw -a "$PWD/none.so" -a glibc --engine parallel m
  expect "status 1" [ "$status" -eq 1 ]
  has "$output" "1 jobs done, 1 failed, 0 not run"
  heaptape matrix -r 1 -w a.htw --engine parallel --engine-option=--no-such-option n
  expect "status 1" [ "$status" -eq 1 ]
  has "$stderr" "heaptape: parallel exited with status 255"
}

# Starts a Slurm cluster that consists of only this host and uses separate ports.
start_slurm() {
  local program folder=$PWD/slurm host port
  for program in munged slurmctld slurmd sbatch sinfo; do
    command -v $program >/dev/null || skip "no $program"
  done
  [ "$(id -u)" -eq 0 ] || skip "Slurm's daemons need root"
  host=$(hostname -s) port=$((20000 + $$ % 20000))
  mkdir -p "$folder/spool" "$folder/state"
  chmod o+x "$PWD" "$folder"
  head -c 1024 /dev/urandom >"$folder/key"
  chmod 600 "$folder/key"
  cat >"$folder/slurm.conf" <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
END
  munged --force -F --socket="$folder/munge.socket" --key-file="$folder/key" --pid-file="$folder/munge.pid" \
    --seed-file="$folder/seed" --log-file="$folder/munge.log" >"$folder/munged" 2>&1 3>&- &
  daemons+=($!)
  export SLURM_CONF=$folder/slurm.conf
  wait_until test -S "$folder/munge.socket"
  slurmctld -D >"$folder/slurmctld" 2>&1 3>&- &
  daemons+=($!)
  slurmd -D >"$folder/slurmd" 2>&1 3>&- &
  daemons+=($!)
  for _ in $(seq 100); do
    [ "$(timeout 5 sinfo -h -o %t 2>/dev/null)" != idle ] || return 0
    sleep 0.1
  done
  skip "Slurm's daemons do not work here"
}

@test "matrix: as a job array of Slurm" {
  skip_under_sanitizer
  start_slurm
  matrix -r 2 -w a.htw -w "b 'quoted'.htw" --engine slurm --engine-option=--oversubscribe --engine-option=--ntasks=1 m
  is_complete m
  heaptape matrix -r 1 -w a.htw -a "$PWD/none.so" -a glibc --engine slurm n
  expect "status 1" [ "$status" -eq 1 ]
  has "$output" "1 jobs done, 1 failed, 0 not run"
  heaptape matrix -r 1 -w a.htw --engine slurm --engine-option=--partition=none o
  expect "status 1" [ "$status" -eq 1 ]
  has "$output$stderr" "1 not run"
}
