# record --segment: a recording in several files, each a trace.
bats_require_minimum_version 1.5.0
load trace
load ../receiver

# A program with children, which runs until the shell pattern $0 matches a file, but not forever.
# shellcheck disable=SC2016
lists_until='for i in $(seq 1200); do set -- $0; [ ! -e "$1" ] || break; sleep 0.1; ls / >/dev/null; done'

setup() {
  cd "$BATS_TEST_TMPDIR" || return 1
  skip_under_sanitizer
}

@test "segments: by size" {
  run -0 "$HEAPTAPE" record --segment 1M -z none --on-segment 'echo "$1" >>said' -o s.%n.ht -- "$HEAPTAPE_PROGRAMS/churn_mt" 2 400000
  mkdir s
  [ "$(ls s.*.ht | wc -l)" -ge 2 ]
  [ "$(sort -V said)" = "$(ls -v s.*.ht)" ]
  [ -z "$(compgen -G '*.part')" ]
  mv s.*.ht s/
  "$HEAPTAPE" check -q s
  [ "$("$HEAPTAPE" stat --json s | jq .events)" -ge 1600000 ]
  [ "$("$HEAPTAPE" stat --json s | jq '.lost_records + .unmatched_frees')" -eq 0 ]
}

@test "segments: by time, keeping the last ones" {
  mkdir s
  "$HEAPTAPE" record -q --segment 300ms --keep 2 --stacks=4 -o s/%n.ht -- sh -c "$lists_until" 's/[4-9].ht'
  [ "$(ls s | wc -l)" -eq 2 ]
  [ ! -e s/1.ht ]
  "$HEAPTAPE" check -q s
  "$HEAPTAPE" stat s >/dev/null
}

@test "segments: a failing command is named, and files that wait for it are kept" {
  mkdir s
  # shellcheck disable=SC2016
  run -0 "$HEAPTAPE" record --segment 300ms --keep 1 -o s/%n.ht --on-segment 'sleep 0.7; echo "$1" >>said; [ "$1" != s/2.ht ]' \
    -- sh -c "$lists_until" s/3.ht
  [[ "$output" == *"heaptape: s/2.ht: --on-segment failed"* ]]
  [[ "$output" != *"s/1.ht: --on-segment failed"* ]]
  [ "$(wc -l <said)" -ge 3 ]
  sort -V -c said
  [ "$(ls s)" = "$(basename "$(tail -1 said)")" ]
}

@test "segments: the recorder is killed: the last segment is complete, the recording is not" {
  mkdir s
  "$HEAPTAPE" record -q --segment 400ms --on-segment cat -o s/%n.ht -- sh -c "$lists_until" go >/dev/null 2>&1 &
  recorder=$!
  wait_until test -e s/2.ht
  writer=$(pgrep -P $recorder -x heaptape)
  kill -9 $recorder
  wait $recorder || true
  wait_until writer_ended
  no_part
  touch go
  "$HEAPTAPE" check -q "s/$(ls s | sort -n | tail -1)"
  run "$HEAPTAPE" check s
  [[ "$output" == *"cut off"* ]]
}

writer_ended() {
  [ -z "$(grep '^State:.[^Z]' "/proc/$writer/status" 2>/dev/null)" ]
}

no_part() {
  [ -z "$(compgen -G 's/*.part')" ]
}

# stops_with_part PID: stops the process while it writes a segment.
stops_with_part() {
  kill -STOP "$1"
  wait_until grep -q '^State:.T' "/proc/$1/status"
  no_part || return 0
  kill -CONT "$1"
  return 1
}

@test "segments: the recorder is killed, and later the rest of its processes" {
  mkdir s
  "$HEAPTAPE" record -q --segment 500ms -o s/%n.ht -- sh -c "$lists_until" go >/dev/null 2>&1 &
  recorder=$!
  wait_until test -e s/2.ht
  writer=$(pgrep -P $recorder -x heaptape)
  # While the writer closes a segment, no segment is unfinished.
  wait_until stops_with_part "$writer"
  kill -9 "$writer" $recorder
  wait $recorder || true
  touch go
  [ "$(ls s/*.part | wc -l)" -eq 1 ]
  "$HEAPTAPE" dump s >dumped
  [ -s dumped ]
}

@test "segments: while a program is idle, no further segment begins; the last one may have no events" {
  mkdir s
  "$HEAPTAPE" record -q --segment 100ms -o s/%n.ht -- "$HEAPTAPE_PROGRAMS/hostile/idle" go 3>&- &
  recorder=$!
  wait_until test -e s/1.ht
  sleep 0.5 # more segments would have begun
  kill -9 "$(pgrep -P $recorder -x idle)"
  status=0
  wait $recorder || status=$?
  recorder=
  [ "$status" -eq 137 ]
  [ "$(echo s/*)" = "s/1.ht s/2.ht" ]
  run -0 "$HEAPTAPE" convert -o 2.htw s/2.ht
  [[ "$output" == "heaptape: 2.htw: 0 events, "* ]]
  "$HEAPTAPE" check -q 2.htw
}

@test "segments: a segment that is removed before it is renamed is reported, and the next one is written" {
  mkdir s
  # The first rename fails as if the file did not exist.
  HEAPTAPE_FAULT=renameat2:ENOENT:1 HEAPTAPE_FAULT_FORKS=1 LD_PRELOAD=$HEAPTAPE_PROGRAMS/hostile/libtest-faults.so \
    run -125 "$HEAPTAPE" record --segment 1M -z none -o s/%n.ht -- "$HEAPTAPE_PROGRAMS/churn_mt" 2 200000
  [[ "$output" == *"heaptape: s/1.ht.part: was removed before it was renamed to s/1.ht"* ]]
  [[ "$output" == *"heaptape: s/%n.ht: 1 of "*" segments were removed, replaced or truncated while they were written"* ]]
  [ ! -e s/1.ht ]
  "$HEAPTAPE" check -q s/2.ht
}

# The recording has ended, and heaptape waits for the process that waits for the command.
waits_for_command() {
  grep -q do_wait "/proc/$recorder/wchan"
}

@test "segments: a command that hangs is named, and a second signal ends the recording" {
  mkfifo ready
  # shellcheck disable=SC2016
  "$HEAPTAPE" record --segment 1G --on-segment 'echo $$ >command; exec sleep 300' -o s.%n.ht -- \
    "$HEAPTAPE_PROGRAMS/service" 1 >ready 2>err 3>&- &
  recorder=$!
  read -r _ <ready
  kill $recorder
  wait_until waits_for_command
  wait_until test -s command
  kill $recorder
  status=0
  wait $recorder || status=$?
  recorder=
  cat err
  command=$(cat command)
  kill "$command" # the command was not ended
  [ "$status" -eq 143 ]
  grep -qx "heaptape: s.1.ht: --on-segment is still running (process $command); heaptape does not wait for it" err
  grep -q "^heaptape: recorded .* events of 1 process" err
  "$HEAPTAPE" check -q s.1.ht
}

@test "segments: invalid options and existing names" {
  local option
  for option in '--segment 1' '--segment 1M --flight 1M' '--segment 1M -o x.ht' '--segment 1M --aggregate' '--on-segment true' \
    '--segment 1M --max-size 1G' '--segment 1M -F json'; do
    # shellcheck disable=SC2086
    run -2 "$HEAPTAPE" record $option -- true
    [ "${#lines[@]}" -eq 2 ]
  done
  touch heaptape.1.ht
  run -125 "$HEAPTAPE" record --segment 1M -- ls
  [[ "$output" == "heaptape: heaptape.1.ht: exists; use -f to replace it" ]]
  run -0 "$HEAPTAPE" record --segment 1M -f -- ls
  "$HEAPTAPE" check -q heaptape.1.ht
}

# serve: accepts PUT on port $port into up/.
serve() {
  python3 - "$port" >server.log 2>&1 3>&- <<'END' &
import http.server, os, sys
class Put(http.server.BaseHTTPRequestHandler):
    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with open("up/" + os.path.basename(self.path), "wb") as f:
            f.write(body)
        self.send_response(201)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Put).serve_forever()
END
  server=$!
}

# has_segments N: the recorder has closed N segments.
has_segments() {
  [ "$(find s kept -name '*.ht' -printf '%f\n' | sort -u | wc -l)" -ge "$1" ]
}

@test "segments: uploaded by curl, while the server is away for some seconds" {
  command -v curl >/dev/null || skip "no curl"
  port=$(free_port)
  mkdir s up kept
  serve
  # shellcheck disable=SC2016
  "$HEAPTAPE" record -q --segment 300ms -o s/%n.ht --on-segment 'cp "$1" kept/ && curl -fsS --retry 100 --retry-delay 1 --retry-all-errors -T "$1" http://127.0.0.1:'$port'/ && rm "$1"' \
    -- sh -c "$lists_until" go >/dev/null 2>&1 &
  recorder=$!
  wait_until test -e up/1.ht
  kill $server
  wait $server || true
  sleep "${HEAPTAPE_TEST_OUTAGE:-0}"
  # These segments are closed while the server is away.
  segments=$(find kept -name '*.ht' | wc -l)
  wait_until has_segments $((segments + 2))
  serve
  touch go
  wait $recorder
  kill $server
  [ -z "$(ls s)" ]
  [ "$(ls up | wc -l)" -ge 4 ]
  diff -r kept up
  "$HEAPTAPE" check -q up
}

@test "segments: small segments do not multiply the size of the recording" {
  # The program has two threads and few live blocks. The segments are much smaller than the data of
  # half a second.
  "$HEAPTAPE" record -q -z none --segment 1M -o 's.%n.ht' -- "$HEAPTAPE_PROGRAMS/churn_mt" 2 1000000
  local n events all
  n=$(ls s.*.ht | wc -l)
  [ "$n" -ge 2 ]
  mkdir d
  mv s.*.ht d
  run -0 "$HEAPTAPE" check d
  all=$(cat d/*.ht | wc -c)
  events=$("$HEAPTAPE" stat --json d | jq .events)
  "$HEAPTAPE" record -q -z none -o one.ht -- "$HEAPTAPE_PROGRAMS/churn_mt" 2 1000000
  echo "$n segments, $all bytes for $events events; one file: $(stat -c %s one.ht)"
  # The segments repeat only the live blocks, so they are not much larger than the trace in one
  # file.
  [ "$all" -le $((2 * $(stat -c %s one.ht))) ]
}
