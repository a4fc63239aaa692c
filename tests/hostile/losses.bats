load hostile

setup_file() {
  export PATH=$HEAPTAPE_PROGRAMS/hostile:$PATH
}

# all_calls COMMAND...: sets $all to the number of events in a complete recording.
all_calls() {
  "$HEAPTAPE" record -q -f -o all.ht -- "$@" >out
  all=$("$HEAPTAPE" stat --json --brief all.ht | jq .events)
  rm all.ht
}

# said_lost: the number of lost records reported by the last run.
said_lost() {
  sed -n 's/^heaptape: \(at least \)\?\([0-9 ]*\) records\? w[a-z]* lost.*$/\2/p' <<<"$stderr" | tr -d ' '
}

# adds_up RECORDED: recorded and lost records add up to all events.
adds_up() {
  local lost
  lost=$(said_lost)
  echo "$1 recorded + ${lost:-none} lost = $all?"
  [ $(($1 + ${lost:-0})) -eq "$all" ]
}

@test "--max-size: later events are counted" {
  skip_under_sanitizer
  all_calls known _exit 100000
  bats_require_minimum_version 1.5.0
  run --separate-stderr timeout -k 1 120 "$HEAPTAPE" record -f -o t.ht --max-size 64K -- known _exit 100000
  expect "output" [ "$output" = 100000 ]
  adds_up "$(events)"
}

@test "a process that cannot create a spool is named, with its calls" {
  skip_under_sanitizer
  all_calls known _exit 10000
  bats_require_minimum_version 1.5.0
  # There is neither a file nor a reserve in the session, because the recorder is limited, too.
  run --separate-stderr timeout -k 1 120 bash -c 'ulimit -f 100; exec "$0" record -o - -- known _exit 10000 >/dev/null' "$HEAPTAPE"
  expect "status" [ "$status" -eq 125 ]
  has "$stderr" "nothing was recorded: its spool could not be created: File too large"
  # A recorder without such limits has reserves in its session for processes that cannot create
  # files.
  run --separate-stderr timeout -k 1 120 "$HEAPTAPE" record -f -o t.ht -- bash -c 'ulimit -f 100; known _exit 10000'
  at_least 110000 events
}

# is_said_exactly: the loss is reported as an exact number.
is_said_exactly() {
  expect "a number" [ -n "$(said_lost)" ]
  expect "an exact number" [ "${stderr#*at least}" = "$stderr" ]
}

@test "no loss is reported without a loss" {
  skip_under_sanitizer
  for command in "known _exit 20000" "known fork 200 5" "known exec 200 5" "known abort 2000"; do
    # shellcheck disable=SC2086 # words
    records $command
    expect "no lost records" [ "${stderr#*lost}" = "$stderr" ]
    expect "no recording turned off" [ "${stderr#*turned itself off}" = "$stderr" ]
    [ "$("$HEAPTAPE" stat --json --brief t.ht | jq .lost_records)" -eq 0 ]
  done
}

@test "two causes: the number is their sum" {
  skip_under_sanitizer
  bats_require_minimum_version 1.5.0
  program='(ulimit -v $0; exec known _exit 500); exec known _exit 100000'
  all_calls sh -c "$program" 4000000
  run --separate-stderr timeout -k 1 120 "$HEAPTAPE" record -f -o t.ht --max-size 64K -- sh -c "$program" 4000
  has "$stderr" "(known) was not recorded: its spool could not be created: Cannot allocate memory (its address space is limited to 4000 KiB) (5500 calls)"
  has "$stderr" "the recording stopped at --max-size"
  is_said_exactly
  adds_up "$(events)"
  # Tests only the first cause.
  run --separate-stderr timeout -k 1 120 "$HEAPTAPE" record -f -o t.ht -- sh -c "$program" 4000
  expect "5500" [ "$(said_lost)" = 5500 ]
  is_said_exactly
  adds_up "$(events)"
}

# records_beside FILL: fills /dev/shm (64 MiB) with FILL bytes after the shell has its spool and
# before known.
records_beside() {
  bats_require_minimum_version 1.5.0
  # shellcheck disable=SC2016 # the inner shell's
  run --separate-stderr timeout -k 1 120 unshare -m bash -c 'mount -t tmpfs -o size=64m,mode=1777 tmpfs /dev/shm
    (read -r _ <begun; head -c "$0" /dev/zero >/dev/shm/fill 2>/dev/null; echo >filled) 3>&- &
    exec "$HEAPTAPE" record -f -o t.ht -- sh -c "echo >begun; read -r x <filled; exec known _exit 20000"' "$1"
}

@test "no space for a spool: all calls are counted" {
  skip_under_sanitizer
  need_unshare -m
  mkfifo begun filled
  records_beside 1k
  all=$(events)
  records_beside 70m
  has "$stderr" "(known) was not recorded: its spool could not be created: No space left on device (220000 calls)"
  is_said_exactly
  adds_up "$(events)"
}

@test "chunks that the recorder cannot map: their events are counted" {
  skip_under_sanitizer
  bats_require_minimum_version 1.5.0
  mkfifo go
  # shellcheck disable=SC2016 # the inner shell's
  program='read -r x <go; exec manythreads 600'
  (echo >go) &
  all_calls bash -c "$program"
  calls=$((all - 3 * 600))
  "$HEAPTAPE" record -f -o t.ht -- bash -c "$program" >out 2>err &
  recorder=$!
  wait_until grep -q '[.]spool' /proc/$recorder/maps
  # The limit of 32 MiB allows the first 64 chunks of a spool, with 4 MiB, and other memory that the
  # recorder may map: 8 MiB for the stack of a thread, and up to 8 MiB for buffers. It does not
  # allow the 64 MiB of 1024 chunks, even if the spool of the shell and a buffer of 4 MiB are
  # unmapped afterwards.
  prlimit --pid $recorder --as=$((($(awk '/VmSize/ { print $2 }' /proc/$recorder/status) + 32768) * 1024))
  echo >go
  status=0
  wait $recorder || status=$?
  stderr=$(cat err) output=$(cat out)
  expect "status 0" [ "$status" -eq 0 ]
  grep -q "recording turned itself off in process [0-9]* (manythreads): the recorder could not map its spool" <<<"$stderr"
  expect "it was partly recorded" [ "${stderr#*not recorded}" = "$stderr" ]
  is_said_exactly
  # Thread starts and exits are records, but not calls.
  lost=$(said_lost)
  echo "$(events) recorded + $lost lost = $calls to $all?"
  [ $(($(events) + lost)) -ge $calls ]
  [ $(($(events) + lost)) -le $all ]
}

@test "a second SIGTERM: unread records are counted as a lower bound" {
  skip_under_sanitizer
  mkfifo fifo
  exec 7<>fifo
  "$HEAPTAPE" record -z none -o fifo -- sh -c 'trap "" TERM; known _exit 300000 >calls' 2>err 7>&- 3>&- &
  recorder=$!
  wait_until waits_in $recorder pipe_write
  # A process with one thread waits when its limit of chunks is full.
  wait_until waits_in "$(pgrep -P "$(pgrep -P $recorder)")" futex
  kill -TERM $recorder
  kill_again 15 $recorder
  wait $recorder || true
  exec 7>&-
  stderr=$(cat err)
  has "$stderr" "signal 15 stopped the recording before its processes exited"
  expect "a bound" grep -q "^heaptape: at least [0-9 ]* records were lost" err
  wait_until [ -s calls ]
  echo "$(said_lost) of $((11 * $(cat calls))) calls"
  [ "$(said_lost)" -ge 150000 ]
  [ "$(said_lost)" -le 3300100 ]
}
