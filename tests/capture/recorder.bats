load trace

# start MANY PACE [OPTION...]: starts `ends exit MANY PACE` under a recorder in the background; sets
# $recorder to its pid.
start() {
  many=$1 pace=$2
  shift 2
  "$HEAPTAPE" record ${loud:--q} -z none -f -o t.ht "$@" -- "$HEAPTAPE_PROGRAMS/ends" exit "$many" "$pace" >told 2>err 3>&- &
  recorder=$!
  until_count 10000
}

# counted: the number of calls made by the program.
counted() {
  local n=0
  [ ! -s count ] || read -r n < <(od -An -tu8 -N8 count)
  echo "$n"
}

has_counted() {
  [ "$(counted)" -ge "$1" ]
}

# until_count N: waits until the program has made N calls.
until_count() {
  wait_until has_counted "$1" || { echo "counted $(counted) of $1"; return 1; }
}

# stop_held: stops the recorder of a held program, whose calls it has read, and lets the program
# continue. Sets $program to its pid.
stop_held() {
  program=$(pgrep -P "$recorder")
  wait_until has_events "$program" 20000
  kill -STOP "$recorder"
  touch go
  until_count 20000
}

events() {
  "$HEAPTAPE_PROGRAMS/trace_lines" t.ht | awk '$5 !~ /^heaptape/' | wc -l
}

@test "SIGKILL of the recorder: the program continues unharmed, the trace is complete up to then" {
  skip_under_sanitizer
  start 300000 slowly
  has_bytes() { [ "$(stat -c %s t.ht)" -gt 40000 ]; }
  wait_until has_bytes
  kill -9 "$recorder"
  until_count 300000
  wait "$recorder" || true
  "$HEAPTAPE_PROGRAMS/trace_lines" t.ht >lines 2>err || grep -q 'cut off' err
  # The salvaged trace has the program's first calls without gaps.
  "$HEAPTAPE" check --salvage -q -f -o s.ht t.ht
  "$HEAPTAPE_PROGRAMS/trace_lines" s.ht >lines
  taken=$(count_lines | awk '$1 == "malloc" { print $3 }') given=$(count_lines | awk '$1 == "free" { print $3 }')
  [ "$taken" -ge 1000 ]
  [ "$taken" -le 300000 ]
  [ $((taken - given)) -ge 0 ]
  [ $((taken - given)) -le 1 ]
  "$HEAPTAPE" convert -q -o s.htw s.ht
  "$HEAPTAPE_PROGRAMS/trace_lines" -p s.ht | awk '$3 != 0 { exit 1 }'
}

# folder_of: sets $folder to the session's directory of a recorder started by `start`.
folder_of() {
  pid=$(pgrep -P "$recorder")
  folder=$(tr '\0' '\n' <"/proc/$pid/environ" | sed -n 's/^HEAPTAPE_SPOOL=//p')
  [ -d "$folder" ]
  outer=${folder%%/heaptape-*}/heaptape-${folder#*/heaptape-}
  outer=${outer%"${outer#*/heaptape-??????}"}
}

@test "the session of a killed recorder can be collected, and is removed a day after its programs have ended" {
  skip_under_sanitizer
  start 0 slowly
  folder_of
  kill -STOP "$recorder"
  # These calls stay in the spool.
  until_count $(($(counted) + 1000))
  heaptape record --collect "$outer" -o u.ht
  fails_with 1 "a recorder uses this directory"
  kill -9 "$recorder"
  wait "$recorder" || true
  # The program turned off its recording when its chunks were full; their contents remain.
  heaptape record --collect "$outer" -o u.ht
  [ "$status" -eq 0 ]
  "$HEAPTAPE" check -q u.ht
  "$HEAPTAPE_PROGRAMS/trace_lines" u.ht >lines
  [ "$(count_lines | awk '$1 == "malloc" { print $3 }')" -gt 100 ]
  "$HEAPTAPE" record -q -o v.ht ls >told
  [ -d "$outer" ]
  touch -d '2 days ago' "$outer"
  "$HEAPTAPE" record -q -f -o v.ht ls >told
  [ -d "$outer" ]
  kill "$pid"
  is_removed() { "$HEAPTAPE" record -q -f -o v.ht ls >told && [ ! -e "$outer" ]; }
  wait_until is_removed
}

@test "SIGSTOP of the recorder: the program waits, and every event is recorded" {
  skip_under_sanitizer
  start 300000 held
  stop_held
  slept() { sed -n 's/^voluntary_ctxt_switches:\t//p' "/proc/$program/status"; }
  has_slept() { [ "$(slept)" -ge "$1" ]; }
  # The program sleeps repeatedly without a call in between. A program without a CPU does not sleep.
  waits() {
    local before
    before=$(counted)
    wait_until has_slept $(($(slept) + 3)) && [ "$(counted)" -eq "$before" ]
  }
  wait_until waits
  many=$(counted)
  kill -CONT "$recorder"
  echo "it made $many calls"
  [ "$many" -lt 300000 ]
  wait "$recorder"
  "$HEAPTAPE_PROGRAMS/trace_lines" t.ht >lines
  [ "$(count_lines | tr '\n' ,)" = "free 5050 300000,malloc 5050 300000," ]
  grep -q 'heaptape.waited' lines
}

@test "SIGSTOP of a lossy recorder: the program continues, and losses are counted" {
  skip_under_sanitizer
  record "$HEAPTAPE_PROGRAMS/ends" exit 1000
  few=$(events)
  rm count
  loud=-v start 300000 held --lossy
  stop_held
  until_count 300000
  kill -CONT "$recorder"
  wait "$recorder"
  read -r _ _ lost _ < <("$HEAPTAPE_PROGRAMS/trace_lines" -p t.ht)
  [ "$lost" -gt 100000 ]
  grep -qE '^heaptape: [0-9 ]+ records were lost: the recorder fell behind \(try without --lossy, or with -z none\)$' err
  [ "$(($(events) + lost))" -eq "$((few + 2 * (300000 - 1000)))" ]
}

@test "a lost realloc counts as one call, in the trace and at the end" {
  skip_under_sanitizer
  local known=$HEAPTAPE_PROGRAMS/hostile/known few i lost off
  all_events() { "$HEAPTAPE" stat --json --brief t.ht | jq '.processes[-1] | .events + .lost_records'; }
  "$HEAPTAPE" record -q -f -o t.ht -- "$known" threads 1 2
  few=$(all_events)
  mkfifo go
  # shellcheck disable=SC2016 # the inner shell's
  "$HEAPTAPE" record -q --lossy -f -o t.ht -- sh -c 'read -r _ <go; exec "$0" threads 300000 2' "$known" >out 3>&- &
  recorder=$!
  { kill -STOP "$recorder" && echo >&4; } 4>go
  # In 0.1 s of CPU time, the program makes more calls than its spool has space for.
  has_run() { [ "$(cut -d' ' -f14 "/proc/$(pgrep -P "$recorder")/stat")" -ge 10 ]; }
  wait_until has_run
  # The first record after a loss has the number of lost records.
  for ((i = 0; i < 1000; i++)); do
    [ ! -s out ] || break
    sleep 0.01
    kill -CONT "$recorder" || break
    sleep 0.01
    kill -STOP "$recorder" || break # it has exited
  done
  kill -CONT "$recorder" || true
  wait "$recorder"
  lost=$("$HEAPTAPE" stat --json --brief t.ht | jq .lost_records)
  [ "$lost" -gt 1000 ]
  # Thread starts and exits are not calls and may be lost, too. If one of the two records of a
  # realloc is lost, the other record is an event.
  off=$(($(all_events) - few - 11 * 2 * 299999))
  echo "$lost lost, off by $off"
  [ "${off#-}" -le $((20 + lost / 50)) ]
}

@test "a program with few events has a batch every 100 ms" {
  skip_under_sanitizer
  local batches ms
  "$HEAPTAPE" record -v -o t.ht -- "$HEAPTAPE_PROGRAMS/paced" 1 0.6 2>err
  batches=$(sed -n 's/.* \([0-9]*\) batches.*/\1/p' err)
  ms=$("$HEAPTAPE" stat --json --brief t.ht | jq '.duration_ns / 1000000 | floor')
  echo "$batches batches in $ms ms"
  [ "$batches" -ge 2 ]
  # A batch is complete after 100 ms, so few are shorter: the first, the last, and two for END.
  [ $((batches * 100)) -le $((ms + 400)) ]
}
