load trace

# good: the trace is complete and converts.
good() {
  "$HEAPTAPE" check -q t.ht && "$HEAPTAPE" convert -q -f -o t.htw t.ht && "$HEAPTAPE" check -q t.htw
}

# trace_of COMMAND...: starts the command under a recorder in the background. Sets $recorder, and
# $pid of the program.
trace_of() {
  # shellcheck disable=SC2086
  "$HEAPTAPE" record -q -f -o t.ht $record_options -- "$@" >told 2>err &
  recorder=$!
  wait_until answers || { cat err status; return 1; }
}

# answers: the program has made its first call; sets $pid.
answers() {
  pid=$(pgrep -P "$recorder") && "$HEAPTAPE" ctl "$pid" status >status 2>&1
}

# ended: waits for the end, and writes the lines of the trace.
ended() {
  wait "$recorder"
  cat err
  "$HEAPTAPE_PROGRAMS/trace_lines" t.ht >lines
}

# field NAME: a field of the status.
field() {
  "$HEAPTAPE" ctl "$pid" status --json | sed -n "s/.*\"$1\": \"\?\([^\",]*\)\"\?,\?$/\1/p"
}

# rounds: how often the program `control loop` has slept. It sleeps after every 60 calls.
rounds() {
  awk '/^voluntary/ { print $2 }' "/proc/$pid/status"
}

# makes_rounds N: waits until the program has made N more rounds of calls.
makes_rounds() {
  local until=$(($(rounds) + $1))
  has_made() { [ "$(rounds)" -ge "$until" ]; }
  wait_until has_made
}

@test "nothing while paused, everything else, in all threads" {
  skip_under_sanitizer
  record "$HEAPTAPE_PROGRAMS/control" phases 4 100
  [ "$status" -eq 0 ]
  counts_as_told
  good
}

@test "the same with a slow clock" {
  skip_under_sanitizer
  HEAPTAPE_CLOCK=monotonic record "$HEAPTAPE_PROGRAMS/control" phases 3 50
  [ "$status" -eq 0 ]
  counts_as_told
  good
}

@test "10,000 concurrent pauses, reallocs stay complete" {
  skip_under_sanitizer
  record "$HEAPTAPE_PROGRAMS/control" storm 4 10000
  [ "$status" -eq 0 ]
  good
}

@test "return values of the verbs" {
  skip_under_sanitizer
  record "$HEAPTAPE_PROGRAMS/control" verbs
  [ "$status" -eq 0 ]
  diff - told <<END
pause 0 status 2
pause 0 status 2
resume 0 status 1
pause 0 status 2
unpause 0 status 1
stop 0 status 3
resume 1 status 3
pause 0 status 3
start 0 status 1
sync 0 status 1
END
}

@test "without the library the verbs have no effect" {
  run "$HEAPTAPE_PROGRAMS/control" verbs
  [ "$status" -eq 0 ]
  [ "${lines[5]}" = "stop 0 status 0" ]
}

@test "reset restarts the file" {
  skip_under_sanitizer
  record "$HEAPTAPE_PROGRAMS/control" reset
  [ "$status" -eq 0 ]
  counts_as_told
  good
}

@test "a pipe cannot be restarted" {
  skip_under_sanitizer
  "$HEAPTAPE" record -q -o - -- sh -c "'$HEAPTAPE_PROGRAMS/control' reset >told; echo \$? >code" | cat >t.ht
  [ "$(cat code)" -eq 95 ]
  "$HEAPTAPE_PROGRAMS/trace_lines" t.ht >lines
  [ "$(count_lines | grep -c ' 6059 ')" -eq 3 ]
}

@test "sync writes all events to the file" {
  skip_under_sanitizer
  record "$HEAPTAPE_PROGRAMS/control" sync
  [ "$status" -eq 0 ]
  "$HEAPTAPE_PROGRAMS/trace_lines" synced.ht >lines
  counts_as_told
}

@test "a fork child inherits the state of its parent" {
  skip_under_sanitizer
  record "$HEAPTAPE_PROGRAMS/control" fork
  [ "$status" -eq 0 ]
  counts_as_told
  good
}

@test "--start=paused, and the program starts itself" {
  skip_under_sanitizer
  record_options=--start=paused record "$HEAPTAPE_PROGRAMS/control" start
  [ "$status" -eq 0 ]
  counts_as_told
  good
}

@test "--start=paused, and the program is never started" {
  skip_under_sanitizer
  record_options=--start=paused record ls
  [ "$status" -eq 0 ]
  [ ! -s lines ]
  "$HEAPTAPE" check -q t.ht
}

@test "ctl: from another process" {
  skip_under_sanitizer
  record_options=--start=paused trace_of "$HEAPTAPE_PROGRAMS/control" loop
  [ "$(field state)" = paused ]
  [ "$(field events)" -eq 0 ]
  "$HEAPTAPE" ctl "$pid" start
  wait_until has_events "$pid" 100
  "$HEAPTAPE" ctl "$pid" sync
  [ "$(field state)" = recording ]
  "$HEAPTAPE" ctl "$pid" pause
  # A call that began before the pause may be recorded late.
  makes_rounds 2
  "$HEAPTAPE" ctl "$pid" sync
  at=$(field events)
  makes_rounds 20
  "$HEAPTAPE" ctl "$pid" sync
  [ "$(field events)" -eq "$at" ]
  [ "$(field state)" = paused ]
  "$HEAPTAPE" ctl "$pid" resume
  [ "$(field state)" = recording ]
  "$HEAPTAPE" ctl "$pid" pause
  "$HEAPTAPE" ctl "$pid" unpause
  [ "$(field state)" = recording ]
  "$HEAPTAPE" ctl "$pid" stop
  [ "$(field state)" = stopped ]
  run "$HEAPTAPE" ctl "$pid" resume
  [ "$status" -eq 1 ]
  has "$output" "heaptape: $pid: recording is stopped and cannot be resumed"
  makes_rounds 2
  "$HEAPTAPE" ctl "$pid" reset
  kill "$pid"
  ended
  [ ! -s lines ]
  "$HEAPTAPE" check -q t.ht
}

@test "ctl: a process with its spool in the reserve" {
  skip_under_sanitizer
  trace_of bash -c "ulimit -f 10; exec '$HEAPTAPE_PROGRAMS/control' loop"
  # Until the exec, the process is bash.
  is_in_reserve() { [ "$(field state)" = recording ] && grep -q "/session$" "/proc/$pid/maps" && ! grep -q '[.]spool$' "/proc/$pid/maps"; }
  wait_until is_in_reserve
  wait_until has_events "$pid" 101
  "$HEAPTAPE" ctl "$pid" stop
  [ "$(field state)" = stopped ]
  at=$(field events)
  [ "$at" -gt 100 ]
  kill "$pid"
  ended
  [ "$(count_lines | wc -l)" -ge 3 ]
}

@test "ctl: processes that cannot be controlled" {
  heaptape ctl $$ status
  fails_with 1 "$$: is not being recorded"
  heaptape ctl 2147483647 sync
  fails_with 1 "2147483647: no such process"
  heaptape ctl 0 sync
  usage_fails "'0' is not a process ID"
  heaptape ctl $$ paus
  usage_fails "unknown verb 'paus'; did you mean 'pause'?"
  heaptape ctl $$ sync --json
  usage_fails "--json requires the verb status"
}

@test "ctl: not permitted" {
  skip_under_sanitizer
  for_other_users tests/control tests/trace_lines
  trace_of "$HEAPTAPE_PROGRAMS/control" loop
  run setpriv --reuid=65534 --regid=65534 --clear-groups "$HEAPTAPE" ctl "$pid" stop
  kill "$pid"
  ended
  [ "$status" -ne 0 ]
  case $output in
    *"not permitted"* | *"Permission denied"*) ;;
    *) echo "$output"; false ;;
  esac
}

@test "ctl: a second of a running redis-server" {
  skip_under_sanitizer
  command -v redis-server >/dev/null && command -v redis-benchmark >/dev/null || skip "no redis"
  record_options=--start=paused trace_of redis-server --port 0 --unixsocket "$PWD/socket" --save '' --daemonize no
  wait_until [ -S socket ]
  redis-benchmark -s "$PWD/socket" -q -l -t set,lpush -r 1000 -d 100 >/dev/null 2>&1 &
  load=$!
  # Some requests are answered while the recording is paused.
  answers_requests() { [ "$(redis-cli -s "$PWD/socket" dbsize)" -gt 0 ]; }
  wait_until answers_requests
  [ "$(field events)" -lt 100 ]
  before=$(date +%s%N)
  "$HEAPTAPE" ctl "$pid" start
  wait_until has_events "$pid" 1000
  early=$(date +%s%N)
  sleep 0.5
  late=$(date +%s%N)
  "$HEAPTAPE" ctl "$pid" sync
  synced=$(field events)
  # Later events are of calls after $late.
  wait_until has_events "$pid" $((synced + 1000))
  "$HEAPTAPE" ctl "$pid" stop
  after=$(date +%s%N)
  # A call that began before the stop may be recorded late.
  answers_ping() { redis-cli -s "$PWD/socket" ping | grep -qx PONG; }
  wait_until answers_ping
  "$HEAPTAPE" ctl "$pid" sync
  stopped=$(field events)
  kill $load
  redis-cli -s "$PWD/socket" shutdown nosave || kill "$pid"
  ended
  echo "$synced events synced, $stopped in all"
  # The calls of the trace, without thread starts and exits, span at least the time between the
  # first and the last observation of new events, and at most the recorded time.
  grep -v ' thread\.' lines >calls
  [ "$(wc -l <calls)" -gt 1000 ]
  [ "$(wc -l <calls)" -le "$stopped" ]
  read -r first _ <calls
  last=$(tail -n 1 calls | cut -d' ' -f1)
  hz=$("$HEAPTAPE_PROGRAMS/trace_lines" -c t.ht)
  awk -v ticks=$((last - first)) -v hz="$hz" -v least=$((late - early)) -v most=$((after - before)) \
    'BEGIN { ns = ticks * 16e9 / hz; print ns " of " least " to " most " ns"; exit !(ns >= least * 0.98 && ns <= most * 1.02) }'
  good
}

@test "a stopped recorder: the commands end after --timeout, and name the recorder" {
  bats_require_minimum_version 1.5.0
  skip_under_sanitizer
  local verb
  record_options=
  trace_of "$HEAPTAPE_PROGRAMS/control" loop
  kill -STOP "$recorder"
  # pause does not wait for the recorder.
  run -0 "$HEAPTAPE" ctl --timeout 1 "$pid" pause
  for verb in sync reset stop; do
    run -1 timeout 60 "$HEAPTAPE" ctl --timeout 1 "$pid" $verb
    [ "$output" = "heaptape: $pid: its recorder (process $recorder) did not answer within 1 s (--timeout); check whether it is stopped" ]
  done
  kill -CONT "$recorder"
  run -0 "$HEAPTAPE" ctl "$pid" sync
  kill "$pid"
  wait "$recorder" || true
}
