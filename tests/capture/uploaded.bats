# record -o URL: uploads segments to another host.
# shellcheck disable=SC2030,SC2031 # each test is a subshell
bats_require_minimum_version 1.5.0
load trace
load ../receiver

setup() {
  cd "$BATS_TEST_TMPDIR" || return 1
  skip_under_sanitizer
  needs_module upload libcurl
  needs_module receive libmicrohttpd
  unset HEAPTAPE_SPOOL http_proxy HTTP_PROXY https_proxy HTTPS_PROXY all_proxy ALL_PROXY port CURL_CA_BUNDLE
  export XDG_STATE_HOME=$PWD/state
  umask 077 # for tokens
}

teardown() {
  no_servers
  show_failure
}

# Programs with children. `lists` runs for several tenths of a second. `lists_until` runs until the
# shell pattern $0 matches a file with data, but not forever.
# shellcheck disable=SC2016
lists='for i in $(seq "$0"); do sleep 0.1; ls / >/dev/null; done; exit 7'
# shellcheck disable=SC2016
lists_until='for i in $(seq 1200); do set -- $0; [ ! -s "$1" ] || break; sleep 0.1; ls / >/dev/null; done; exit 7'

# events_of LOG: the number of events that record printed.
events_of() {
  sed -n 's/.*recorded \([0-9 ]*\) events of.*/\1/p' "$1" | tr -d ' '
}

@test "uploaded: every segment arrives, and the spool is empty" {
  start_receiver
  run -7 "$HEAPTAPE" record -o "http://127.0.0.1:$port/" --upload-wait 600 --segment 300ms -- sh -c "$lists_until" 'up/*/*/3.ht'
  echo "$output" >record.log
  [[ "$output" == *"uploaded "*" segments to http://127.0.0.1:$port/"* ]]
  [[ "$output" != *"not uploaded"* ]]
  [ -z "$(ls state/heaptape/upload)" ]
  [[ $(echo up/*/*) == up/$(uname -n | tr -c 'A-Za-z0-9._+\n-' _)/sh-20*Z-* ]]
  [ "$(find up -name '*.ht' | wc -l)" -ge 3 ]
  "$HEAPTAPE" check -q up/*/*
  [ "$("$HEAPTAPE" stat --json up/*/* | jq .events)" -eq "$(events_of record.log)" ]
  [ "$("$HEAPTAPE" stat --json up/*/* | jq '.lost_records + .unmatched_frees')" -eq 0 ]
  stop_receiver
}

# two_wait: at least two segments wait in the spool.
two_wait() {
  [ "$(find spool -name '*.ht' | wc -l)" -ge 2 ]
}

# keep_waiting: copies the segments that wait in the spool to kept/. The recorder may rename other
# files meanwhile.
keep_waiting() {
  local file
  mkdir -p kept
  for file in $(cd spool && find . -name '*.ht'); do
    mkdir -p "kept/${file%/*}"
    cp "spool/$file" "kept/$file"
  done
}

@test "uploaded: the server is away for some seconds" {
  start_receiver
  "$HEAPTAPE" record -o "http://127.0.0.1:$port/" --upload-wait 600 --spool spool --segment 300ms -- sh -c "$lists_until" go >out 2>record.log 3>&- &
  recorder=$!
  wait_until compgen -G 'up/*/*/1.ht'
  stop_receiver
  sleep "${HEAPTAPE_TEST_OUTAGE:-0}"
  wait_until two_wait
  wait_until grep -q 'cannot be uploaded: .*tries again' record.log
  keep_waiting
  start_receiver
  echo end >go
  wait $recorder || [ $? -eq 7 ]
  [ -z "$(ls spool)" ]
  [ "$(find kept -name '*.ht' | wc -l)" -ge 2 ]
  for file in $(cd kept && find . -name '*.ht'); do
    cmp "kept/$file" "up/$file"
  done
  "$HEAPTAPE" check -q up/*/*
  [ "$("$HEAPTAPE" stat --json up/*/* | jq .events)" -eq "$(events_of record.log)" ]
  grep -q 'accepts uploads again' record.log
  stop_receiver
}

@test "uploaded: a server that stays away: the wait is bounded, and upload continues" {
  port=$(free_port)
  run -125 timeout 600 "$HEAPTAPE" record -o "http://127.0.0.1:$port/a" --upload-wait 1 --spool "$PWD/spool" --segment 300ms \
    -- sh -c "$lists_until" 'spool/*/*/3.ht'
  cp -r spool kept
  [ "$(find kept -name '*.ht' | wc -l)" -ge 3 ]
  line=$(grep 'not uploaded yet' <<<"$output")
  command=${line##*run \'}
  command=${command%\'}
  [[ "$command" == "heaptape upload $PWD/spool/"*" http://127.0.0.1:$port/a/"*/ ]]
  start_receiver
  # shellcheck disable=SC2086
  "$HEAPTAPE" ${command#heaptape }
  diff -r -x .incoming kept up/a
  "$HEAPTAPE" check -q up/a/*/*
  stop_receiver
}

@test "uploaded: a server that never answers does not block the recorder" {
  echo 'def answer(h, path, body, number): return 0, {}' >server.py
  start_server
  # The program runs until the server has its first request.
  run -125 timeout 600 "$HEAPTAPE" record -o "http://127.0.0.1:$port/" --upload-wait 1 --segment 300ms -- sh -c "$lists_until" requests.log
  [[ "$output" == *" not uploaded yet"* ]]
  [ "$(wc -l <requests.log)" -eq 1 ]
}

# children PID: child processes named heaptape.
children() {
  pgrep -P "$1" -x heaptape
}

# catches_term PID: the process has a handler for SIGTERM, whose bit is 14.
catches_term() {
  local caught
  caught=$(sed -n 's/^SigCgt:\t//p' "/proc/$1/status")
  [ $((0x$caught >> 14 & 1)) -eq 1 ]
}

@test "uploaded: a signal ends the wait, and the status shows that a segment remains" {
  local code=0 writer
  port=$(free_port)
  "$HEAPTAPE" record -o "http://127.0.0.1:$port/" --upload-wait 10000 -- sh -c "$lists" 1 2>record.log >out 3>&- &
  recorder=$!
  wait_until grep -q 'tries again' record.log
  # The writer catches the signal once it waits.
  writer=$(children $recorder)
  wait_until catches_term "$writer"
  kill $recorder
  wait $recorder || code=$?
  [ "$code" -eq 125 ]
  grep -q '1 segment is not uploaded yet' record.log
  grep -q 'recorded .* events' record.log
}

@test "uploaded: the process that uploads is killed, and another one continues" {
  start_receiver
  "$HEAPTAPE" record -q -o "http://127.0.0.1:$port/" --upload-wait 600 --segment 300ms -- sh -c "$lists_until" go 2>record.log 3>&- &
  recorder=$!
  wait_until compgen -G 'up/*/*/1.ht'
  writer=$(children $recorder)
  kill -9 "$(children "$writer")"
  wait_until compgen -G 'up/*/*/4.ht'
  echo end >go
  wait $recorder || [ $? -eq 7 ]
  [ -z "$(ls state/heaptape/upload)" ]
  [ "$(find up -name '*.ht' | wc -l)" -ge 4 ]
  "$HEAPTAPE" check -q up/*/*
  stop_receiver
}

@test "uploaded: everything is killed, and upload continues" {
  start_receiver
  "$HEAPTAPE" record -q -o "http://127.0.0.1:$port/" --spool spool --segment 300ms -- sh -c "$lists_until" go 2>record.log 3>&- &
  recorder=$!
  wait_until compgen -G 'up/*/*/1.ht'
  stop_receiver
  wait_until two_wait
  # Another process uploads this recording now.
  run -1 "$HEAPTAPE" upload --wait 1 spool "http://127.0.0.1:$port/"
  [[ "$output" == *"skipped, because another process"* ]]
  writer=$(children $recorder)
  uploader=$(children "$writer")
  kill -9 $recorder "$writer" "$uploader"
  wait $recorder || true
  echo end >go
  keep_waiting
  start_receiver
  "$HEAPTAPE" upload spool "http://127.0.0.1:$port/"
  [ -z "$(find spool -name '*.ht')" ]
  for file in $(cd kept && find . -name '*.ht'); do
    cmp "kept/$file" "up/$file"
  done
  run "$HEAPTAPE" check up/*/*
  [[ "$output" == *"cut off"* ]]
  "$HEAPTAPE" stat -v up/*/* >figures
  stop_receiver
}

@test "uploaded: --quiet does not hide missing uploads; with --upload-wait 0, they are no failure" {
  port=$(free_port)
  run -0 "$HEAPTAPE" record -q -o "http://127.0.0.1:$port/" --upload-wait 0 --spool spool --segment 1M -- "$HEAPTAPE_PROGRAMS/churn_mt" 1 1000
  [[ "$output" == *"heaptape: 1 segment is not uploaded yet, "* ]]
  [ "$(grep -c '^heaptape: ' <<<"$output")" -eq 1 ]
}

@test "uploaded: a full spool drops the oldest files with a note, and the program continues" {
  port=$(free_port)
  # About nine segments of 1 MiB each. The spool has space for four.
  run -125 "$HEAPTAPE" record -o "http://127.0.0.1:$port/" --upload-wait 0 --spool spool --spool-limit 4M --segment 1M -z none \
    -- "$HEAPTAPE_PROGRAMS/churn_mt" 2 150000
  [[ "$output" == *"/1.ht: dropped, not uploaded: the spool has reached --spool-limit"* ]]
  [[ "$output" == *"segments were dropped, "*": --spool-limit was reached"* ]]
  [[ "$output" == *"segments are not uploaded yet"* ]]
  local left dropped
  left=$(find spool -name '*.ht' | wc -l)
  dropped=$(grep -c 'ht: dropped' <<<"$output")
  [ "$left" -ge 2 ]
  [ "$(du -sb spool | cut -f1)" -le $((5 << 20)) ]
  [ "$dropped" -ge 2 ]
  # The last segments can be read: they begin with the live blocks.
  for n in $(seq $((dropped + 1)) $((dropped + left))); do
    "$HEAPTAPE" check -q spool/*/*/"$n".ht
  done
  "$HEAPTAPE" check -q spool/*/*
}

@test "uploaded: a wrong token, which is replaced while it runs" {
  echo right >tokens
  echo wrong >token
  start_receiver --token-file tokens
  "$HEAPTAPE" record -o "http://127.0.0.1:$port/" --upload-wait 600 --segment 300ms --upload-token-file token -- sh -c "$lists" 5 2>record.log 3>&- &
  recorder=$!
  wait_until grep -q 'answered 401' record.log
  echo right >token
  wait $recorder || [ $? -eq 7 ]
  [ -z "$(ls state/heaptape/upload)" ]
  "$HEAPTAPE" check -q up/*/*
  # One message for all attempts.
  [ "$(grep -c "answered 401" record.log)" -eq 1 ]
  stop_receiver
}

@test "uploaded: over TLS" {
  command -v openssl >/dev/null || skip "no openssl"
  make_certificate
  start_receiver --certificate cert.pem --key key.pem
  CURL_CA_BUNDLE=$PWD/cert.pem "$HEAPTAPE" record -o "https://127.0.0.1:$port/" --upload-wait 600 -- ls / >out 2>record.log
  "$HEAPTAPE" check -q up/*/ls-*
  stop_receiver
}

@test "uploaded: invalid options, and errors at startup" {
  local option
  for option in '--flight 1M' '--aggregate' '-F json' '--keep 2' '--on-segment true' '--max-size 1G' '--spool a%nb'; do
    # shellcheck disable=SC2086
    run -2 "$HEAPTAPE" record -o http://127.0.0.1:1/ $option -- true
    [ "${#lines[@]}" -eq 2 ]
  done
  run -2 "$HEAPTAPE" record --spool s -- true
  run -125 "$HEAPTAPE" record -o "http://h/?x" -- true
  run -125 "$HEAPTAPE" record -o http://127.0.0.1:1/ --upload-token-file none -- true
  [ "$output" = "heaptape: none: No such file or directory" ]
  touch file
  run -125 "$HEAPTAPE" record -o http://127.0.0.1:1/ --spool file -- true
  [[ "$output" == "heaptape: file/"*": Not a directory" ]]
  run -125 env -u HOME -u XDG_STATE_HOME "$HEAPTAPE" record -o http://127.0.0.1:1/ -- true
  [ "$output" = "heaptape: --spool is needed: neither XDG_STATE_HOME nor HOME is set" ]
  run -127 "$HEAPTAPE" record -o http://127.0.0.1:1/ --spool s -- /nonexistent
  [ "${#lines[@]}" -eq 1 ]
  [ -z "$(ls s)" ]
}
