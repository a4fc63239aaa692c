load trace

# json FILE EXPRESSION: evaluates the expression on s, the output of `stat --json FILE`.
json() {
  "$HEAPTAPE" stat --json "$1" | python3 -c "import json, sys; s = json.load(sys.stdin); print($2)"
}

@test "facts of a trace about the machine, the program and its allocator" {
  skip_under_sanitizer
  command -v python3 >/dev/null || skip "no python3"
  local before
  before=$(date +%s)
  record "$HEAPTAPE_PROGRAMS/names" 90
  [ "$status" -eq 7 ]
  [ "$(json t.ht "s['recorded']['kernel']")" = "$(uname -sr)" ]
  [ "$(json t.ht "s['recorded']['host']")" = "$(uname -n)" ]
  [ "$(json t.ht "s['recorded']['cpus']")" -eq "$(nproc --all)" ]
  [ "$(json t.ht "s['recorded']['argv'][1]")" = 90 ]
  [ "$(json t.ht "s['recorded']['clock'] in ('tsc', 'cntvct', 'monotonic')")" = True ]
  [ "$(json t.ht "s['recorded']['clock_hz'] > 10**6")" = True ]
  [ "$(json t.ht "$before - 1 <= s['recorded']['realtime_ns'] / 1e9 <= $(date +%s) + 1")" = True ]
  [ "$(json t.ht "s['processes'][0]['exe']")" = "$(realpath "$HEAPTAPE_PROGRAMS/names")" ]
  [ "$(json t.ht "s['processes'][0]['argv'][1]")" = 90 ]
  [ "$(json t.ht "s['processes'][0]['exit_status']")" = 7 ]
  library=$(json t.ht "s['processes'][0]['allocator']['library']")
  [ "$(json t.ht "s['processes'][0]['allocator']['build_id']")" = \
    "$(readelf -n "$library" | sed -n 's/.*Build ID: //p')" ]
}

# The recorder is stopped until the program has ended. It then finds both images at the same time. A
# child process ends after the program.
@test "only the last image of the program has its exit status" {
  skip_under_sanitizer
  command -v python3 >/dev/null || skip "no python3"
  # shellcheck disable=SC2016
  "$HEAPTAPE" record -q -f -o t.ht -- sh -c '(while kill -0 $$ 2>/dev/null; do LD_PRELOAD= sleep 0.01; done; exec "$0" _exit 5) & kill -STOP $PPID; exec "$1" 1' \
    "$HEAPTAPE_PROGRAMS/ends" "$HEAPTAPE_PROGRAMS/names" >told 2>err 3>&- &
  local recorder=$!
  is_zombie() { ps -o stat= --ppid "$recorder" | grep -q ^Z; }
  wait_until is_zombie
  kill -CONT "$recorder"
  local status=0
  wait "$recorder" || status=$?
  [ "$status" -eq 7 ]
  [ "$(json t.ht "[p['exe'].split('/')[-1] for p in s['processes'] if p['pid'] == s['processes'][0]['pid']][-1]")" = names ]
  [ "$(json t.ht "[p['exe'].split('/')[-1] for p in s['processes']][-1]")" = ends ]
  [ "$(json t.ht "[(p['exe'].split('/')[-1], p['exit_status']) for p in s['processes'] if 'exit_status' in p]")" = "[('names', 7)]" ]
}

@test "names of threads that exited, and of others" {
  skip_under_sanitizer
  command -v python3 >/dev/null || skip "no python3"
  record "$HEAPTAPE_PROGRAMS/names" 1200
  "$HEAPTAPE" dump -k thread.end t.ht | grep -q 'thread.end("short-lived")$'
  json t.ht "[t['name'] for t in s['processes'][0]['thread_names']]" | grep -q long-lived
  [ "$(json t.ht "[t['name'] for t in s['by_thread']]")" = "['names', 'short-lived', 'long-lived']" ]
  "$HEAPTAPE" stat -v t.ht | grep -Eq "^ +1 .* short-lived$"
  # Thread starts and exits, also in the workload.
  "$HEAPTAPE" convert -q -o t.htw t.ht
  [ "$("$HEAPTAPE" dump -k thread.create t.htw | wc -l)" -eq 2 ]
  [ "$("$HEAPTAPE" dump -k thread.start t.htw | wc -l)" -eq 2 ]
  "$HEAPTAPE" dump -k thread.end t.htw | grep -q short-lived
}

@test "a program ended by a signal" {
  skip_under_sanitizer
  command -v python3 >/dev/null || skip "no python3"
  record "$HEAPTAPE_PROGRAMS/ends" kill 1000
  [ "$(json t.ht "s['processes'][0]['signal']")" = 9 ]
}

@test "the memory of the program, and of its heap" {
  skip_under_sanitizer
  command -v python3 >/dev/null || skip "no python3"
  python=$(python3 -c 'import sys; print(sys.executable)')
  # The recorder samples the memory in a pass with calls. Each sync waits for a pass.
  record "$python" -c '
import ctypes, time
sync = ctypes.CDLL(None).heaptape_sync
x = [b"x" * 100000 for i in range(1000)]
for i in range(20): x.append(bytes(1000 + i)); time.sleep(0.02); assert sync() == 0
del x
for i in range(20): bytes(1000 + i); time.sleep(0.02); assert sync() == 0'
  [ "$status" -eq 0 ]
  "$HEAPTAPE" convert -q -o t.htw t.ht
  for file in t.ht t.htw; do
    # Each entry is [ns, minimum, mean and maximum resident bytes, heap bytes].
    json "$file" "all(90e6 < max(r[k] for r in s['timeline']['rss_ns_min_mean_max_anon']) < 300e6 for k in (3, 4))" | grep -q True
    json "$file" "all(r[4] <= r[3] for r in s['timeline']['rss_ns_min_mean_max_anon'])" | grep -q True
    # The memory is released at the end.
    json "$file" "s['timeline']['rss_ns_min_mean_max_anon'][-1][4] < 60e6" | grep -q True
  done
}

@test "the memory at the exit" {
  skip_under_sanitizer
  command -v python3 >/dev/null || skip "no python3"
  record python3 -c '
import os
block = b"x" * 50000000
lines = dict(line.split(":") for line in open("/proc/self/status"))
with open("memory", "w") as f: f.write(lines["VmRSS"].split()[0] + " " + lines["RssAnon"].split()[0] + "\n")
os._exit(0)'
  [ "$status" -eq 0 ]
  read -r rss anon <memory
  "$HEAPTAPE" sql --csv t.ht "select abs(rss_bytes / 1024 - $rss) < 4096, abs(anon_bytes / 1024 - $anon) < 4096
    from samples join processes using (process) where time_ns = end_time_ns order by rss_bytes desc limit 1" >found
  [ "$(tail -n 1 found)" = 1,1 ]
}

# judge_times: compares the stamps of a recording of `times` with the readings of the program and the
# bounds in the trace. Prints the number of events that have the stamp of the event before.
judge_times() {
  "$HEAPTAPE" stat --json t.ht >stat.json
  python3 -c '
import json, sys
SKID, SIZE = 4000, "4321"
stat = json.load(open("stat.json"))
unit, hz, process = stat["recorded"]["timestamp_ticks"], stat["recorded"]["clock_hz"], stat["processes"][0]
lines = [line.split() for line in open("lines")]
stamps = [int(line[0]) * unit for line in lines if line[4] == "malloc" and line[6] == SIZE]
readings = [[int(n) for n in line.split()] for line in open("told")]
assert len(stamps) == len(readings), (len(stamps), len(readings))
most = process.get("early_max_ns", 0) * hz / 1e9 + SKID
usual = process.get("early_usual_ns", 0) * hz / 1e9 + SKID
early = [before - stamp for (before, after), stamp in zip(readings, stamps)]
assert all(stamp <= after + SKID for (before, after), stamp in zip(readings, stamps)), "a time is late"
assert max(early) <= most, (max(early), most)
unusual = sum(e > usual for e in early)
assert unusual <= process.get("early_events", 0), unusual
print(sum(a == b for a, b in zip(stamps, stamps[1:])))'
}

@test "times are within the bounds in the trace, and exact with --clock=exact" {
  skip_under_sanitizer
  command -v python3 >/dev/null || skip "no python3"
  record "$HEAPTAPE_PROGRAMS/times" 10
  [ "$(json t.ht "s['recorded']['clock'] != 'monotonic'")" = True ] || skip "no counter"
  judge_times >unread
  "$HEAPTAPE" stat -v t.ht | grep '^times of calls may be early by up to'
  "$HEAPTAPE" convert -q -f --strict -o t.htw t.ht
  [ "$(json t.htw "s['processes'][0]['early_max_ns'] > 0")" = True ]
  record_options=--clock=exact record "$HEAPTAPE_PROGRAMS/times" 10
  judge_times >read
  cat unread read
  [ "$(cat unread)" -gt "$(cat read)" ]
  [ "$(json t.ht "'early_max_ns' in s['processes'][0]")" = False ]
  [ "$("$HEAPTAPE" stat -v t.ht | grep -c 'times of calls may be early')" -eq 0 ]
}
