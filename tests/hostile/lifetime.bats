load hostile

setup_file() {
  export PATH=$HEAPTAPE_PROGRAMS/hostile:$PATH
}

@test "a vfork child of a silent fork child is not mistaken for it" {
  skip_under_sanitizer
  for n in 1000 1000000; do
    records vf 0 "$n"
    expect "output" [ "$output" = "F done" ]
    [ "$(events)" -eq $((2 * n + 1)) ]
  done
}

# Chromium makes such a child to call chroot.
@test "a child of clone that has no thread-local storage" {
  skip_under_sanitizer
  for how in "" --maps; do
    records $how bare
    expect "status of the child" [ "$output" = 700 ]
    [ "$status" -eq 0 ]
    [ "$("$HEAPTAPE" dump -k malloc t.ht | grep -c 'malloc(10)')" -ge 2 ]
  done
}

@test "a program in another time namespace" {
  skip_under_sanitizer
  need_unshare -T
  records unshare -T --boottime 1000 churn 1000000
  expect "output" [ "$output" = "done 1000000" ]
  at_least 2000000 events
}

@test "programs in parallel pid namespaces, all of them pid 1" {
  skip_under_sanitizer
  need_unshare -pf
  records sh -c 'for i in 1 2 3 4 5 6; do unshare -pf churn 500000 & done; wait'
  expect "all of them" [ "${#lines[@]}" -eq 6 ]
  at_least 6000000 events
}

@test "a process without files in a pid namespace is not mistaken for one with its number outside" {
  skip_under_sanitizer
  need_unshare -pf
  # The process uses a reserve and exits before the recorder's pass. Process 2 outside is a kernel
  # thread or belongs to the namespace.
  records unshare -pf bash -c "ulimit -f 0; churn 10; churn 20; echo ended"
  expect "output" [ "$output" = "$(printf 'done 10\ndone 20\nended')" ]
  expect "it ended" [ "$status" -eq 0 ]
}

@test "a recorder in a pid namespace, with the /proc of another" {
  skip_under_sanitizer
  need_unshare -pf
  bats_require_minimum_version 1.5.0
  run --separate-stderr timeout -k 1 120 unshare -pf "$HEAPTAPE" record -o t.ht -- churn 1000000
  expect "output" [ "$output" = "done 1000000" ]
  at_least 2000000 events
}

@test "recorder and program both have pid 1, in separate namespaces" {
  skip_under_sanitizer
  need_unshare -pf
  bats_require_minimum_version 1.5.0
  run --separate-stderr timeout -k 1 120 unshare -pf "$HEAPTAPE" record -o t.ht -- unshare -pf bash -c 'churn 1000000; echo'
  expect "output" [ "$output" = "done 1000000" ]
  expect "it ended" [ "$status" -eq 0 ]
  at_least 2000000 events
}

@test "/proc is unmounted while a program is recorded" {
  skip_under_sanitizer
  need_unshare -m
  bats_require_minimum_version 1.5.0
  for who in "$HEAPTAPE record -f -o t.ht -- sh -c 'umount -l /proc; exec churn 1000000'" \
    "$HEAPTAPE record -f -o t.ht -- unshare -m sh -c 'umount -l /proc; exec churn 1000000'"; do
    run --separate-stderr timeout -k 1 120 unshare -m sh -c "exec $who"
    expect "output" [ "$output" = "done 1000000" ]
    at_least 2000000 events
  done
}

@test "without /proc heaptape finds its own files, however it is executed" {
  skip_under_sanitizer
  need_unshare -m
  bats_require_minimum_version 1.5.0
  mkdir bin
  ln -s "$HEAPTAPE" bin/linked
  cat >try <<'END'
umount -l /proc
! readlink /proc/self/exe || exit 9
cd "$1" && shift
PATH=$PWD:$PATH exec "$@"
END
  for how in "$HEAPTAPE" ./heaptape heaptape "$PWD/bin/linked"; do
    run --separate-stderr timeout -k 1 120 unshare -m bash try "$(dirname "$HEAPTAPE")" \
      "$how" record -f -o "$PWD/t.ht" -- "$HEAPTAPE_PROGRAMS/hostile/churn" 1000
    expect "$how" [ "$output" = "done 1000" ]
    at_least 2000 events
    rm t.ht
  done
}

@test "without /proc a program that cannot create files is refused, and does not wait" {
  skip_under_sanitizer
  need_unshare -m
  bats_require_minimum_version 1.5.0
  # shellcheck disable=SC2016 # the inner shell's
  run --separate-stderr timeout -k 1 120 unshare -m \
    bash -c 'umount -l /proc; exec "$0" record -f -o t.ht -- bash -c "ulimit -f 0; known short 500 5 | cat"' "$HEAPTAPE"
  expect "output" [ "$output" = 40000 ]
  has "$stderr" "not recorded"
}

@test "the main thread exits by pthread_exit, also before the recorder's first pass" {
  skip_under_sanitizer
  records leader 1000000
  expect "output" [ "$output" = "done" ]
  [ "$(events)" -ge 2000000 ]
  records sh -c 'kill -STOP $PPID; (sleep 0.6; kill -CONT $PPID) & exec leader 1000000'
  expect "output" [ "$output" = "done" ]
  at_least 2000000 events
}

@test "a process claims to be another recorded process" {
  skip_under_sanitizer
  records sh -c 'slowchurn & v=$!; sleep 0.3; fakespool $v; wait $v; echo victim ended'
  has "$output" "fake made"
  has "$output" "victim ended"
  at_least 2000000 events
}

@test "more processes than the recorder has descriptors" {
  skip_under_sanitizer
  bats_require_minimum_version 1.5.0
  # The recorder raises its soft limit; the program keeps its own.
  run --separate-stderr timeout -k 1 120 bash -c 'ulimit -Sn 40; exec "$0" record -o t.ht -- bash -c "manyprocs 60 1000; ulimit -Sn"' "$HEAPTAPE"
  [ "$output" = "all done
40" ]
  at_least 120000 events
  # The recorder cannot raise the hard limit: some processes are refused, with a message.
  run --separate-stderr timeout -k 1 120 bash -c 'ulimit -n 40; exec "$0" record -f -o t.ht -- manyprocs 60 200000' "$HEAPTAPE"
  [ "$output" = "all done" ]
  has "$stderr" "were not recorded: no space, memory or file descriptor"
}

@test "a recorder with too little address space" {
  skip_under_sanitizer
  bats_require_minimum_version 1.5.0
  run --separate-stderr timeout -k 1 120 bash -c 'ulimit -v 400000; exec "$0" record -o t.ht -- manyprocs 60 1000' "$HEAPTAPE"
  [ "$output" = "all done" ]
  at_least 120000 events
  run --separate-stderr timeout -k 1 120 bash -c 'ulimit -v 250000; exec "$0" record -f -o t.ht -- manyprocs 60 200000' "$HEAPTAPE"
  [ "$output" = "all done" ]
  # Either some processes are refused, or the recorder ends because it is out of memory.
  case $stderr in *"were not recorded: no space, memory or file descriptor"* | *"out of memory"*) ;; *) false ;; esac
}

# has_begun: the recorder's program has allocated; sets $program.
has_begun() {
  program=$(pgrep -P "$recorder") && has_events "$program" 1
}

# Runs a program under a recorder and kills the recorder. Sets $folder to the session.
kill_recorder() {
  "$HEAPTAPE" record -q -f -o t.ht -- "$@" 3>&- &
  recorder=$!
  wait_until has_begun
  folder=$(tr '\0' '\n' <"/proc/$program/environ" | sed -n 's/^HEAPTAPE_SPOOL=//p')
  kill -9 "$recorder"
  wait "$recorder" || true
}

# In a pid namespace, no process of another test takes the pid or gets a pid that was used before.
@test "a killed recorder whose pid was reused by another process" {
  skip_under_sanitizer
  [ -w /proc/sys/kernel/ns_last_pid ] || skip "pids cannot be chosen"
  need_unshare -pfm --mount-proc
  cat >inside <<'END'
"$HEAPTAPE" record -q -f -o t.ht -- idle go &
recorder=$!
has_begun() {
  program=$(pgrep -P "$recorder") && [ "$("$HEAPTAPE" ctl "$program" status --json | jq .events)" -ge 1 ]
}
until has_begun 2>/dev/null; do sleep 0.02; done
kill -9 "$recorder"
wait "$recorder"
# Runs in a separate shell, because this shell already had a child with this pid.
bash -c 'echo $(($0 - 1)) >/proc/sys/kernel/ns_last_pid; sleep 100 & echo $! >reused' "$recorder"
echo "$recorder" >recorder
touch go
until [ -s idle.done ]; do sleep 0.02; done
END
  timeout -k 1 120 unshare -pfm --mount-proc bash inside 3>&-
  expect "the pid" [ "$(cat reused)" -eq "$(cat recorder)" ]
}

@test "after a recorder was killed, new processes are not recorded, and the next recorder removes its session" {
  skip_under_sanitizer
  local first
  kill_recorder forkloop 100000
  has_forked() { [ "$(cat forkloop.n)" -gt "$1" ]; }
  # An earlier child may still have a spool.
  wait_until has_forked $(($(cat forkloop.n) + 2))
  first=$(du -s "$folder" | cut -f1)
  wait_until has_forked $(($(cat forkloop.n) + 100))
  # There were more processes than before, but they need no more memory.
  echo "$first KiB, then $(du -s "$folder")"
  [ "$(du -s "$folder" | cut -f1)" -le "$first" ]
  kill "$program"
  # After all of them have exited.
  is_removed() { "$HEAPTAPE" record -q -f -o t.ht -- churn 10 && [ ! -e "$folder" ]; }
  wait_until is_removed
}

@test "a recording without a recorder by another version is kept for that version" {
  skip_under_sanitizer
  local kept
  kept=$(mktemp -d /dev/shm/heaptape-XXXXXX)
  HEAPTAPE_SPOOL=$kept LD_PRELOAD=$HEAPTAPE_BUILD/src/capture/libheaptape.so churn 10
  printf 0 | dd of="$kept/session" bs=1 seek=7 conv=notrunc status=none
  "$HEAPTAPE" record -q -f -o t.ht -- churn 10
  expect "the session" [ -e "$kept/session" ]
  rm -r "$kept"
}

@test "recorders that start at the same time keep each other's sessions" {
  skip_under_sanitizer
  # A session without a recorder is kept for --collect.
  kept=$(mktemp -d /dev/shm/heaptape-XXXXXX)
  HEAPTAPE_SPOOL=$kept LD_PRELOAD=$HEAPTAPE_BUILD/src/capture/libheaptape.so churn 10
  "$HEAPTAPE" record -q -f -o t.ht -- churn 10
  "$HEAPTAPE" record -q -f -o collected.ht --collect "$kept"
  rm -r "$kept"
  local recorders=() r
  for r in 1 2 3 4; do
    for _ in {1..25}; do
      "$HEAPTAPE" record -q -f -o "$r.ht" -- churn 10 >/dev/null 2>>err || echo "$r" >>failed
    done 3>&- &
    recorders+=($!)
  done
  wait "${recorders[@]}"
  expect "no failure: $(cat err)" [ ! -e failed ]
}

@test "a fork child inherits the recording state of its parent" {
  skip_under_sanitizer
  records fstate
  [ "$("$HEAPTAPE" dump t.ht | grep -c 'malloc(5555)')" -eq 100 ]
}

@test "a recorder without file descriptors neither blocks a program nor passes its reserve to another" {
  skip_under_sanitizer
  local n
  # shellcheck disable=SC2016 # the inner shell's
  for n in $(seq 5 20); do
    status=0
    timeout -k 1 120 "$HEAPTAPE" record -f -o t.ht -- sh -c 'prlimit --pid $PPID --nofile="$0:$0"
      { ulimit -f 0; known short 500 5; echo "status $?"; } | cat' "$n" >out 2>err || status=$?
    expect "the output with $n: $(cat err)" [ "$(cat out)" = $'40000\nstatus 0' ]
    # Three results are correct: a message reports that nothing was recorded, or everything was
    # recorded, or the losses are reported.
    [ "$status" -eq 0 ] || [ "$status" -eq 125 ]
    [ "$status" -eq 125 ] || [ "$(wc -l <err)" -gt 1 ] || expect "all events" [ "$(events)" -ge 440000 ]
  done
}
