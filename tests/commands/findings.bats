# Each sentence of HT_FINDINGS (src/report/findings.h) has a test "NAME: yes" with a workload or
# results for which it must appear, and a test "NAME: no" for which it must not.
# tests/house/findings.bats checks that no test is missing.
load ../helper

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  unset NO_COLOR
  export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache PYTHONPATH=$BATS_TEST_TMPDIR
  # Events of a program: block = malloc(size), free(block). Addresses are never reused. The events
  # are printed at the end, spread over $spread seconds if it is set.
  cat >events.py <<'END'
import atexit, json, os
at, events, sites = 1 << 20, [], set()

def put(kind, tid, **more):
    events.append({'kind': kind, 'pid': 1, 'tid': tid, 'time_ns': 1000 * (len(events) + 1), **more})

@atexit.register
def print_all():
    spread, last = float(os.environ.get('spread', 0)), len(events) * 1000
    for e in events:
        if spread:
            e['time_ns'] = int(e['time_ns'] / last * spread * 1e9)
        print(json.dumps(e))

def malloc(size, site=0, tid=1, kind='malloc', **more):
    global at
    if site and site not in sites:
        sites.add(site)
        put('heaptape.stack', tid, site=site, frames=[hex(site << 12)])
    at += (size + 4095) // 4096 * 4096 + 4096
    put(kind, tid, size=size, result=hex(at), **({'site': site} if site else {}), **more)
    return at

def free(block, tid=1):
    put('free', tid, ptr=hex(block))

def realloc(block, size, moved):
    global at
    to = block
    if moved:
        at += (size + 4095) // 4096 * 4096 + 4096
        to = at
    put('realloc', 1, ptr=hex(block), size=size, result=hex(to))
    return to

def others(n=2000, live=64):
    """Calls without anything that stands out: many sizes, freed late."""
    blocks = []
    for i in range(n):
        blocks.append(malloc(100 + i * 37 % 1900 // 16 * 16, 900 + i % 40))
        if len(blocks) > live:
            free(blocks.pop(0))
    for block in blocks:
        free(block)
END
}

# workload STATEMENTS: writes the program's events to w.htw.
workload() {
  python3 -c "from events import *
$1" >w.json
  "$HEAPTAPE" import -q -f --format json -o w.htw w.json
  "$HEAPTAPE" stat -q --json w.htw >stat.json
}

# said NAME, unsaid NAME: the findings of stat.json, or of FILE, contain NAME, or do not contain it.
# Each finding must have a text.
names() {
  python3 - "$1" "${2:-stat.json}" <<'END'
import json, re, sys
name, path = sys.argv[1:]
if path.endswith('.html'):
    d = json.loads(re.search(r'id="data">(.*?)</script>', open(path).read(), re.S).group(1))
else:
    d = json.load(open(path))
found = {f['name']: f for f in d['findings']}
assert all(f['text'].endswith('.') and len(f['text']) > 20 for f in d['findings'])
acts = [f['act'] for f in d['findings'] if f['name'] != 'verdict']
assert acts == sorted(acts, reverse=True), acts
print(found[name]['text'] + ' ' + (found[name]['advice'] or '') if name in found else 'unsaid', file=sys.stdout)
END
}

said() {
  run names "$@"
  echo "$output"
  [ "$status" -eq 0 ]
  [ "$output" != unsaid ]
}

unsaid() {
  run names "$@"
  echo "$output"
  [ "$status" -eq 0 ]
  [ "$output" = unsaid ]
}

# results STATEMENTS: writes r.html with results a and b, objects of compare's allocators. By
# default, no finding applies.
results() {
  local made=$BATS_FILE_TMPDIR/c.json
  if [ ! -e "$made" ]; then
    "$HEAPTAPE_PROGRAMS/make_workload" c.htw churn 1 2000 >/dev/null
    "$HEAPTAPE" compare -q --json --no-latency -r 1 -a glibc -a glibc,X=1 c.htw >c.json
    mv c.json "$made"
  fi
  python3 -c "import json
d = json.load(open('$made'))
a, b = d['allocators']
MiB = 1 << 20
for r in a, b:
    r.update(wall_ns=1e6, wall_ratio=1, wall_ratio_ci95=[0.9, 1.1], peak_rss_bytes=100 * MiB, rss_ratio=1, peak_fragmentation=1,
             rss_after_free_bytes=10 * MiB, fidelity=None)
$1
json.dump(d, open('c.json', 'w'))"
  "$HEAPTAPE" report -q -f -o r.html c.json
}

# steps SECONDS STATEMENTS: a workload whose events are spread over a number of seconds.
steps() {
  spread=$1 workload "$2"
}

@test "verdict: yes" {
  steps 5 'for i in range(2000):
    malloc(2000, 7)
    free(malloc(200, 8))'
  said verdict
  has "$output" "Live bytes grow linearly, by 3."
  has "$output" "MiB in 0x7000. The first of them frees none of its blocks."
  [ "$(jq -r '.findings[0].name, .verdict.kind, .verdict.live_growth.shape' stat.json | xargs)" = "verdict grows linear" ]
  [ "$(jq -r '.findings[0].act' stat.json)" = true ]
}

@test "verdict: no" {
  # Without a recording, there is no verdict.
  results ''
  unsaid verdict r.html
}

@test "the verdict of a workload: a cache, a burst that stays, a saw-tooth, a short recording" {
  steps 5 'import random
random.seed(1)
cache = {}
for i in range(6000):
    k = random.randrange(3000)
    if k in cache: free(cache[k])
    cache[k] = malloc(2000, 7)'
  [ "$(jq -r '.verdict.kind, .verdict.act' stat.json | xargs)" = "fills false" ]
  steps 5 'others(1000)
kept = [malloc(2000, 7) for i in range(1000)]
others(5000)'
  [ "$(jq -r '.verdict.kind, .verdict.live_growth.shape' stat.json | xargs)" = "unknown step" ]
  steps 5 'for i in range(4):
    blocks = [malloc(2000, 7) for i in range(2000)]
    for block in blocks: free(block)
    others(1000)'
  [ "$(jq -r '.verdict.kind, .verdict.act' stat.json | xargs)" = "sawtooth false" ]
  steps 2.9 'for i in range(2000): malloc(2000, 7)'
  [ "$(jq -r '.verdict.kind, .verdict.live_growth.shape' stat.json | xargs)" = "too_short unknown" ]
}

@test "the verdict of a workload: the last page map is from before most of the growth of RSS" {
  local mib=1048576 last
  for last in 40 5; do
    "$HEAPTAPE_PROGRAMS/make_trace" a.ht <<END
allocator /lib/x86_64-linux-gnu/libc.so.6
process 100 prog
0 1000 malloc size=24 result=0x100010
sample 1000000000 $((4 * mib))
pages 1000000000 files=$((4 * mib))
mapping 0x100000 10 heap 0+1
sample 5000000000 $((last * mib))
0 5000000000 mark text=end
end
END
    "$HEAPTAPE" stat -q --json a.ht >a$last.json
  done
  [ "$(jq -r .verdict.kind a40.json)" = unknown ]
  has "$(jq -r .verdict.text a40.json)" "RSS grew by 36.0 MiB after the last page map"
  [ "$(jq -r .verdict.kind a5.json)" = healthy ]
  [ "$(jq -r .verdict.text a5.json | grep -c "after the last page map")" -eq 0 ]
}

# service STATEMENTS: makes a.ht, a trace of a process that exits. The statements print its
# calls with malloc(second, size), which returns the block, and free(second, block).
service() {
  python3 - "$1" >a.txt <<'END'
import sys
blocks = 0
def malloc(second, size):
    global blocks
    blocks += 1
    print(0, int(second * 1e9), "malloc", f"size={size}", f"result={0x100000 + 0x10000 * blocks}")
    return blocks
def free(second, block):
    print(0, int(second * 1e9), "free", f"ptr={0x100000 + 0x10000 * block}")
print("process 100 prog")
exec(sys.argv[1])
print("exit")
print("end")
END
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <a.txt
  "$HEAPTAPE" stat -q --json a.ht >stat.json
}

# judged KIND ACT TEXT...: the verdict is of this kind, and its text contains each TEXT.
judged() {
  local text
  jq -r .verdict.text stat.json
  [ "$(jq -r '.verdict.kind, .verdict.act' stat.json | xargs)" = "$1 $2" ]
  shift 2
  for text; do
    has "$(jq -r .verdict.text stat.json)" "$text"
  done
}

@test "the verdict on a process that frees its blocks at exit is about the time before" {
  # A list that grows until the end, and a destructor that frees it.
  service 'all = [malloc(1 + i * 0.01, 20000) for i in range(900)]
for b in all: free(10, b)'
  judged grows true "until the process exits" "At exit, the process frees them"
  # The same process, if it does not free the blocks.
  service 'for i in range(900): malloc(1 + i * 0.01, 20000)'
  judged grows true "until the process exits"
  [ "$(jq -r .verdict.text stat.json | grep -c "At exit")" -eq 0 ]
  # The exit takes a tenth of the time, with pauses.
  service 'all = [malloc(1 + i * 0.01, 20000) for i in range(900)]
for i, b in enumerate(all): free(10 + i // 100 * 0.1, b)'
  judged grows true "At exit, the process frees them"
  # A full table.
  service 'all = [malloc(1 + i * 0.001, 20000) for i in range(900)]
for i in range(900): free(2 + i * 0.01, malloc(2 + i * 0.01, 200))
for b in all: free(11, b)'
  judged fills false "No problem found. Live bytes grew by" "to 17.2 MiB, and no longer grow"
  # Batches. The last batch is freed at the end.
  service 'for k in range(5):
    all = [malloc(1 + 2 * k + i * 0.002, 20000) for i in range(900)]
    for b in all: free(2.9 + 2 * k, b)'
  judged sawtooth false "no leak"
}

# not_judged TEXT...: the verdict contains none of the texts.
not_judged() {
  local text
  for text; do
    [ "$(jq -r .verdict.text stat.json | grep -cF -- "$text")" -eq 0 ]
  done
}

@test "the call paths that grow are those that grow in the time that is judged" {
  # Blocks of another call site replace a table's elements in the first half of the time, in
  # which a large block is allocated. A third call site leaks all the time, and frees most of its
  # blocks.
  steps 10 'table = [malloc(90000, 3) for i in range(240)]
for i in range(5000):
    kept = malloc(30000, 5)
    if i % 10: free(kept)
    if i == 300: malloc(40000000, 6)
    if i % 10 == 0 and i < 2400:
        free(table[i // 10])
        malloc(90000, 4)'
  judged grows true "MiB in 0x5000. The first of them frees 90 % of its blocks."
  not_judged 0x4000 "Other call paths"
}

@test "blocks that move from one call path to another are not growth alone" {
  # All the time, blocks of 0x4000 replace blocks of 0x3000, and 0x5000 leaks.
  steps 10 'table = [malloc(90000, 3) for i in range(100)]
for i in range(4000):
    malloc(1000, 5)
    if i % 40 == 0:
        free(table[i // 40])
        malloc(90000, 4)'
  judged grows true "in 0x4000; " "in 0x5000. The first of them frees none of its blocks. Other call paths shrink by "
}

@test "a call path whose blocks replaced others, and which no longer grows, is not named" {
  # Blocks of 0x4000 replace blocks of 0x3000 in the first 60 % of the time; 0x5000 leaks.
  steps 10 'table = [malloc(90000, 3) for i in range(120)]
for i in range(4000):
    malloc(1000, 5)
    if i % 20 == 0 and i < 2400:
        free(table[i // 20])
        malloc(90000, 4)'
  judged grows true "MiB in 0x5000. The first of them frees none of its blocks."
  not_judged 0x4000 "Other call paths"
}

@test "growth that ended is not a leak, even if the process then makes no calls" {
  # The process allocates in the first fifth of the time, and then waits.
  service 'all = [malloc(1 + i * 0.002, 20000) for i in range(900)]
free(11, malloc(11, 8))'
  judged fills false "No problem found" "and no longer grow"
  # The process allocates until the end.
  service 'all = [malloc(1 + i * 0.011, 20000) for i in range(900)]'
  judged grows true
}

@test "growth over calls is a leak if calls that keep nothing show the load" {
  # The load falls. Each request keeps a block, and frees two.
  local times='import math
times = [1 - 4 * math.log(1 - i / 1000) for i in range(920)]'
  service "$times"'
for t in times:
    malloc(t, 20000)
    free(t, malloc(t, 100))
    free(t, malloc(t, 100))'
  judged grows true "Live bytes grow linearly with the number of calls, by " "but not at a constant rate over time"
  [ -z "$(jq -r .verdict.text stat.json | grep -F '/s')" ]
  # The blocks of a cache without replacement, or of a leak: there is no other call.
  service "$times"'
for t in times: malloc(t, 20000)'
  judged fills false "a cache or table that fills, or a leak while the load falls" "so the load is not known"
  [ "$(jq -r .verdict.sure stat.json)" = unsure ]
  # The rate is constant.
  service 'for i in range(900): malloc(1 + i * 0.01, 20000)'
  judged grows true "Live bytes grow linearly, by"
}

@test "growth counts blocks from before the recording, also before the first call" {
  # trace LINE...: the verdict on a process with 16 MB from before the recording.
  trace() {
    printf '%s\n' 'process 100 prog' '0 1000000 preexisting size=16000000 result=0x1000000' "$@" end |
      "$HEAPTAPE_PROGRAMS/make_trace" a.ht
    "$HEAPTAPE" stat -q --json a.ht | jq -r '.verdict | .live_growth.shape, .text' | xargs
  }
  has "$(trace '0 5000000000 malloc size=16000000 result=0x9000000' '0 9000000000 free ptr=0')" \
    "step Live bytes (30.5 MiB) grew by 15.3 MiB in a part of the"
  has "$(trace '0 5000000000 malloc size=20000 result=0x9000000' '0 9000000000 free ptr=0')" \
    "steady Live bytes (15.3 MiB) do not grow."
}

# two STATEMENTS: writes a trace of process 100, which allocates 20 MB, and of process 101, whose
# calls the statements print with call(second, text), to two.ht. Process 100 makes $rate allocations
# per second.
two() {
  python3 - "$1" "${rate:-1e6}" >two.txt <<'END'
import sys
def call(second, text):
    print(0, int(second * 1e9), text)
print("process 100 prog")
for i in range(1000):
    call(1 + i / float(sys.argv[2]), f"malloc size=20000 result={0x1000000 + 0x10000 * i}")
call(10, "free ptr=0x1000000")
print("process 101 worker")
exec(sys.argv[1])
print("end")
END
  "$HEAPTAPE_PROGRAMS/make_trace" two.ht <two.txt
  "$HEAPTAPE" stat -q --json two.ht >stat.json
}

@test "other_process_grows: yes" {
  two 'for i in range(800): call(1 + i / 100, f"malloc size=4000 result={0x5000000 + 0x10000 * i}")'
  said verdict
  said other_process_grows
  has "$output" "Live bytes of process 101 (/bin/x) grow linearly, by 2.9 MiB in 7.97 s"
  has "$output" "'heaptape convert --pid 101 -o 101.htw two.ht'"
  [ "$(jq -r '.verdict.kind, (.findings | map(.name) | index("other_process_grows"))' stat.json | xargs)" = "unknown 1" ]
  # The verdict on a process without a problem mentions the other process.
  rate=500 two 'for i in range(800): call(1 + i / 100, f"malloc size=4000 result={0x5000000 + 0x10000 * i}")'
  [ "$(jq -r '.verdict.kind, .findings[1].name' stat.json | xargs)" = "fills other_process_grows" ]
  has "$(jq -r .verdict.text stat.json)" "No problem found in this process, but process 101 (/bin/x) grows. Live bytes grew by"
  rate=500 two 'call(2, "malloc size=4000 result=0x5000000")'
  has "$(jq -r .verdict.text stat.json)" "No problem found. Live bytes grew by"
}

@test "other_process_grows: no" {
  # The growth ends, and the process makes other calls.
  two 'for i in range(800): call(1 + i / 1000, f"malloc size=4000 result={0x5000000 + 0x10000 * i}")
for i in range(800):
    call(2 + i / 100, "malloc size=100 result=0x4000000")
    call(2 + i / 100, "free ptr=0x4000000")'
  unsaid other_process_grows
  # Less than a tenth of the peak.
  two 'for i in range(800): call(1 + i / 100, f"malloc size=2000 result={0x5000000 + 0x10000 * i}")'
  unsaid other_process_grows
  # The process frees as many blocks from before the recording.
  two 'for i in range(800):
    call(1 + i / 100, f"malloc size=4000 result={0x5000000 + 0x10000 * i}")
    call(1 + i / 100, f"free ptr={0x15000000 + 0x10000 * i}")'
  unsaid other_process_grows
  # The only process that grows has the verdict.
  two 'for i in range(8000): call(1 + i / 1000, f"malloc size=4000 result={0x5000000 + 0x10000 * i}")'
  [ "$(jq -r .verdict.kind stat.json)" = grows ]
  unsaid other_process_grows
}

@test "peak: yes" {
  workload 'a = malloc(1000); free(malloc(2000)); free(a)'
  said peak
  has "$output" "Live bytes peak at 2.9 KiB in 2 blocks, after 25 % of the events"
  workload 'free(malloc(2000))'
  said peak
  has "$output" "Live bytes peak at 2.0 KiB in 1 block, after 0 % of the events"
}

@test "peak: no" {
  workload 'free(malloc(0))'
  unsaid peak
}

@test "peak_of_a_site: yes" {
  workload 'for i in range(90): malloc(100, 1 + i % 9)
malloc(3000, 77)'
  said peak_of_a_site
  has "$output" "25 % of the peak, 2.9 KiB, comes from one call site: 0x4d000."
}

@test "peak_of_a_site: the calls of one line count as one" {
  skip_under_sanitizer
  cat >line.c <<'END'
#include <stdlib.h>
void *volatile kept;
int main(int n, char **v) {
  for (int i = 0; i < 40; i++) kept = (i & 1) ? malloc(10000) : calloc(1, 10000);
  for (int i = 0; i < 30; i++)
    kept = malloc(10000);
  return !v[n - 1];
}
END
  cc -O1 -g -fno-builtin -o line line.c
  "$HEAPTAPE" record -q --stacks -o line.ht ./line
  "$HEAPTAPE" stat -q --json line.ht >stat.json
  [ "$(jq '[.call_sites.at_peak[] | select(.live_at_peak_bytes == 200000)] | length' stat.json)" -eq 2 ]
  said peak_of_a_site
  has "$output" "57 % of the peak, 390.6 KiB, comes from one call site: main (line.c:4)."
  # The table is sorted by the sums, too.
  "$HEAPTAPE" stat -q line.ht | grep '^ .*main (line.c' | tr -s ' ' >table
  [ "$(head -n 1 table)" = " 390.6 KiB 390.6 KiB main (line.c:4)" ]
}

@test "peak_of_a_site: no" {
  workload 'for i in range(90): malloc(100, 1 + i % 9)'
  unsaid peak_of_a_site
}

@test "copied_growth: yes" {
  workload 'others()
for i in range(20):
    old, n = malloc(32, 3), 64
    while n <= 4096:
        new = malloc(n, 3)
        free(old)
        old, n = new, 2 * n
    free(old)'
  said copied_growth
  has "$output" "140 blocks, 79.4 KiB in all, are replaced at once by a larger one of the same call site"
  has "$output" ": 0x3000. Reserve the final size first"
}

@test "copied_growth: no" {
  # The replacing blocks are smaller, are from another site, follow after another call, or are much
  # larger.
  workload 'others()
for i in range(200):
    a = malloc(2000, 3); b = malloc(1000, 3); free(a); free(b)
    a = malloc(1000, 4); b = malloc(2000, 5); free(a); free(b)
    a = malloc(1000, 6); b = malloc(2000, 6); free(malloc(8, 7)); free(a); free(b)
    a = malloc(100, 8); b = malloc(2000, 8); free(a); free(b)'
  unsaid copied_growth
}

@test "copied_growth: no, if elements of a table are replaced by smaller ones as often" {
  workload 'others()
for i in range(200):
    a = malloc(2000, 3); b = malloc(3000, 3); free(a)
    c = malloc(2000, 3); free(b); free(c)'
  unsaid copied_growth
}

@test "copied_growth: no, if few bytes are copied per second" {
  spread=10 workload 'others()
for i in range(20):
    old, n = malloc(32, 3), 64
    while n <= 4096:
        new = malloc(n, 3)
        free(old)
        old, n = new, 2 * n
    free(old)'
  unsaid copied_growth
}

@test "copied_growth: a std::vector, with its line" {
  skip_under_sanitizer
  cat >vector.cc <<'END'
#include <vector>
int main() {
  for (int k = 0; k < 50; k++) {
    std::vector<int> v;
    for (int i = 0; i < 5000; i++)
      v.push_back(i);
    asm volatile("" : : "r"(v.data()) : "memory");
  }
}
END
  c++ -O1 -g -o vector vector.cc
  "$HEAPTAPE" record -q --stacks -o v.ht ./vector
  "$HEAPTAPE" stat -q --json v.ht >stat.json
  said copied_growth
  has "$output" "650 blocks"
  has "$output" "(vector.cc:6)"
  sed -i 's/std::vector<int> v;/&v.reserve(5000);/' vector.cc
  c++ -O1 -g -o vector vector.cc
  "$HEAPTAPE" record -q --stacks -f -o v.ht ./vector
  "$HEAPTAPE" stat -q --json v.ht >stat.json
  unsaid copied_growth
}

@test "realloc_moves: yes" {
  workload 'for i in range(20):
    b = malloc(100)
    for n in range(120, 1000, 20): b = realloc(b, n, True)'
  said realloc_moves
  has "$output" "100 % of the growing reallocs moved the block and copied"
}

@test "realloc_moves: no, if few bytes are copied per second" {
  spread=10 workload 'for i in range(20):
    b = malloc(100)
    for n in range(120, 1000, 20): b = realloc(b, n, True)'
  unsaid realloc_moves
}

@test "realloc_moves: no" {
  workload 'for i in range(20):
    b = malloc(100)
    for n in range(120, 1000, 20): b = realloc(b, n, n % 100 == 0)'
  unsaid realloc_moves
}

@test "remote_frees: yes" {
  workload 'others()
for i in range(200): free(malloc(100), tid=2)'
  said remote_frees
  has "$output" "9.1 % of the blocks are freed or resized by another thread"
}

@test "remote_frees: no" {
  workload 'others()
for i in range(200): free(malloc(100, tid=2), tid=2)
for i in range(50): free(malloc(100), tid=2)'
  unsaid remote_frees
  # The thread that allocated a block before the recording is not known.
  workload 'malloc(100, kind="preexisting")
others()
for i in range(200): free(malloc(100), tid=2)'
  unsaid remote_frees
}

@test "remote_frees_of_a_site: yes" {
  workload 'others()
for i in range(200): free(malloc(100, 5), tid=2)
for i in range(200): free(malloc(100, 11 + i % 10), tid=2)'
  said remote_frees_of_a_site
  has "$output" "50 % of the blocks that another thread frees are allocated in 0x5000."
}

@test "remote_frees_of_a_site: no" {
  workload 'others()
for i in range(400): free(malloc(100, 11 + i % 10), tid=2)'
  said remote_frees
  unsaid remote_frees_of_a_site
}

@test "large_requests: yes" {
  workload 'for i in range(1000): free(malloc(200000))'
  said large_requests
  has "$output" "1 000 requests over 128 KiB account for 100 % of the requested bytes."
}

@test "large_requests: no" {
  workload 'for i in range(999): free(malloc(200000))
for i in range(1000): free(malloc(130000))'
  unsaid large_requests
}

# Blocks of 1 MiB with the given number of KiB in use.
used='
def used(kib, site=0, kind="malloc", more=0):
    block = malloc(1 << 20, site, kind=kind)
    put("heaptape.residency", 1, ptr=hex(block), size=1 << 20, resident_bytes=(kib + more) << 10, used_bytes=kib << 10,
        front_bytes=kib << 10)
    free(block)
'

@test "hardly_used: yes" {
  workload "$used"'for i in range(10): used(128); free(malloc(100 << 10))'
  said hardly_used
  has "$output" "87 % of 10.0 MiB in blocks of 16 KiB and more was not used"
}

@test "hardly_used: no" {
  # In these blocks, one page more than the threshold is in use.
  workload "$used"'for i in range(10): used(252)'
  unsaid hardly_used
  # Pages that were already resident may have been used before.
  workload "$used"'for i in range(10): used(0, more=1)'
  unsaid hardly_used
  # The use of most bytes is unknown.
  workload "$used"'used(0); free(malloc(10 << 20))'
  unsaid hardly_used
}

@test "hardly_used_of_a_site: yes" {
  workload "$used"'for i in range(10): used(0, 2 + i); used(0, 7)'
  said hardly_used_of_a_site
  has "$output" "55 % of the unused bytes are allocated in 0x7000."
}

@test "hardly_used_of_a_site: no" {
  # The site with the most bytes uses its bytes. Each of the other sites has a tenth of the bytes.
  workload "$used"'for i in range(10): used(0, 2 + i)
used(1000, 1); used(1000, 1)'
  said hardly_used
  unsaid hardly_used_of_a_site
  workload "$used"'for i in range(10): used(1000, 2)'
  unsaid hardly_used_of_a_site
}

@test "rounding_glibc: yes" {
  workload 'for i in range(100): free(malloc(25))'
  said rounding_glibc
  has "$output" "Internal fragmentation with glibc's chunks is 60 % of the requested bytes."
}

@test "rounding_glibc: no" {
  workload 'for i in range(100): free(malloc(40)); free(malloc(24))'
  unsaid rounding_glibc
}

@test "rounding_glibc: the recorded allocator is named if it is another one" {
  command -v musl-gcc >/dev/null || skip "no musl"
  cat >p.c <<'END'
#include <stdlib.h>
int main(void) { for (int i = 0; i < 2000; i++) { free(malloc(25)); free(malloc(200000)); } return 0; }
END
  musl-gcc -fno-builtin -o musl p.c
  gcc -fno-builtin -o glibc p.c
  # words PROGRAM: prints the findings of its trace and of its workload, which must be the same.
  words() {
    "$HEAPTAPE" record -q -f -o t.ht "./$1"
    "$HEAPTAPE" convert -q -f -o w.htw t.ht
    for file in t.ht w.htw; do
      "$HEAPTAPE" stat --json "$file" |
        jq -r '.findings[] | select(.name | test("rounding|large")) | .text, .advice' >"$file.words"
    done
    diff t.ht.words w.htw.words && cat t.ht.words
  }
  words musl >out
  output=$(<out)
  has "$output" "Each may cost an mmap and page faults: reuse the buffers."
  has "$output" "Internal fragmentation with four size classes per doubling would be"
  has "$output" "(the program used musl)"
  words glibc >out
  output=$(<out)
  has "$output" "(the program used glibc)"
  has "$output" "raise the mmap threshold"
}

@test "rounding_four: yes" {
  workload 'for i in range(100): free(malloc(1040))'
  said rounding_four
  has "$output" "Internal fragmentation with four size classes per doubling is 23 % of the requested bytes."
}

@test "rounding_four: no" {
  workload 'for i in range(100): free(malloc(1024)); free(malloc(1280))'
  unsaid rounding_four
}

@test "above_class: yes" {
  workload 'for i in range(100): b = malloc(1280, 5); free(malloc(1040, 4)); free(b)'
  said above_class
  has "$output" "100 requests are just above one of jemalloc's four size classes per doubling"
  has "$output" "costs 23.4 KiB of internal fragmentation, in 0x4000."
  workload 'free(malloc(1040, 4))'
  said above_class
  has "$output" "1 request is just above one of jemalloc's four size classes per doubling"
}

@test "above_class: no" {
  # A request of 1,041 bytes is 17 bytes above a size class. 140 is in the middle between two
  # classes. 1,024 is a class.
  workload 'for i in range(100):
    for n in 1041, 140, 1024, 128, 16: free(malloc(n, 4))'
  unsaid above_class
  # The call site has no block at the peak.
  workload 'for i in range(100): free(malloc(1040, 4)); free(malloc(1280, 5))'
  unsaid above_class
  # The sizes of the call site vary.
  workload 'for i in range(100): free(malloc(1040, 4)); free(malloc(1200, 4)); free(malloc(1280, 4))'
  unsaid above_class
}

@test "small_requests: yes" {
  workload 'for i in range(100): free(malloc(16)); free(malloc(17)); free(malloc(300))'
  said small_requests
  has "$output" "33 % of the requests are for 16 bytes or less"
}

@test "small_requests: no" {
  workload 'for i in range(100): free(malloc(16)); free(malloc(17)); free(malloc(300)); free(malloc(400))'
  unsaid small_requests
}

@test "zeroed: yes" {
  workload 'for i in range(10): free(malloc(100, kind="calloc", count=3)); free(malloc(500))'
  said zeroed
  has "$output" "calloc allocates 38 % of the requested bytes."
}

@test "zeroed: no, if few bytes are cleared per second" {
  spread=10 workload 'for i in range(10): free(malloc(100, kind="calloc", count=3)); free(malloc(500))'
  unsaid zeroed
}

@test "zeroed: no" {
  workload 'for i in range(10): free(malloc(100, kind="calloc", count=1)); free(malloc(500))'
  unsaid zeroed
}

# traced LINES: writes the statistics of a trace of a process with a call and these lines of
# make_trace.
traced() {
  printf 'process 1 x\n0 10 malloc size=100 result=4096\n%s\nend\n' "$1" | "$HEAPTAPE_PROGRAMS/make_trace" t.ht
  "$HEAPTAPE" stat -q --json t.ht >stat.json
}

@test "lost_records: yes" {
  traced 'lost 0 12
0 20 free ptr=4096'
  said lost_records
  has "$output" "12 records were lost while recording"
}

@test "lost_records: no" {
  traced ''
  unsaid lost_records
}

@test "the calls of processes that were not recorded are not lost records" {
  local confined=$HEAPTAPE_PROGRAMS/hostile/confined
  "$confined" -p -f || skip "libc makes other system calls"
  recording -- "$confined" -p -f
  said unrecorded_processes
  unsaid lost_records
  [ "$(jq .lost_records stat.json)" -gt 0 ]
}

# recording COMMAND...: writes the statistics of a recording of the command.
recording() {
  skip_under_sanitizer
  "$HEAPTAPE" record -q -f -o t.ht "$@" || true
  "$HEAPTAPE" stat -q --json t.ht >stat.json
}

# program NAME STATEMENTS: compiles a C program.
program() {
  printf '#include <dlfcn.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n%s\nint main(int n, char **a) { (void)n, (void)a; %s return 0; }\n' \
    "${3:-}" "$2" >"$1.c"
  gcc -w -fno-builtin -o "$1" "$1.c" -ldl
}

# deepbind FLAGS: opens calls.so, which allocates 200,000 bytes that stay; the program itself
# allocates 100.
deepbind() {
  printf '#include <stdlib.h>\nvoid work(void) { for (int i = 0; i < 200; i++) malloc(1000); }\n' >calls.c
  gcc -fno-builtin -shared -fPIC -o calls.so calls.c
  program opens "malloc(100); void (*work)(void) = dlsym(dlopen(\"$PWD/calls.so\", RTLD_NOW | $1), \"work\"); work();"
  sed -i '1i #define _GNU_SOURCE' opens.c
  gcc -w -fno-builtin -o opens opens.c -ldl
  recording -- ./opens
}

@test "turned_off: yes" {
  traced 'off the^recorder^has^ended'
  said turned_off
  has "$output" "Recording turned itself off in process 1 (/bin/x): the recorder has ended."
}

@test "turned_off: no" {
  traced ''
  unsaid turned_off
}

@test "missing_spools: yes" {
  traced 'balance without_spool=2 unopened_spools=1'
  said missing_spools
  has "$output" "2 processes were not recorded: no space, memory or file descriptor was left for a spool. 1 spool could not be opened"
  traced 'balance unreadable_spools=1'
  said missing_spools
  has "$output" "1 spool could not be read: a program truncated or overwrote it. Leave that program out with --follow."
}

@test "missing_spools: no" {
  traced ''
  unsaid missing_spools
}

@test "overwritten_session: yes" {
  traced 'balance overwritten_session=1'
  said overwritten_session
  has "$output" "A program overwrote the memory that it shares with the recorder."
}

@test "overwritten_session: no" {
  traced ''
  unsaid overwritten_session
}

@test "stopped_early: yes" {
  skip_under_sanitizer
  "$HEAPTAPE" record -q -f -o t.ht --max-size 4K -- "$HEAPTAPE_PROGRAMS/hostile/known" _exit 100000
  "$HEAPTAPE" stat -q --json t.ht >stat.json
  said stopped_early
  has "$output" "The recording stopped at --max-size."
  traced 'balance stop_signal=15'
  said stopped_early
  has "$output" "Signal 15 stopped the recording before its processes exited."
  traced 'balance ended_early=1 ended_by=77'
  said stopped_early
  has "$output" "Process 77 ended the recording, as 'heaptape ctl PID detach' does."
  traced 'balance ended_early=1'
  said stopped_early
  has "$output" "The recording ended early."
}

@test "stopped_early: no" {
  traced ''
  unsaid stopped_early
}

@test "clock: yes" {
  traced 'balance clock_pid=9 clock_behind_ns=3000000'
  said clock
  has "$output" "The clock of process 9 is 3.0 ms behind the recorder's: times and the order of its events are wrong."
}

@test "clock: the kernel does not trust it" {
  traced 'balance clock_distrusted=1'
  said clock
  has "$output" "The kernel stopped using the processor's counter as its clock: times and the order of events may be wrong."
}

@test "clock: no" {
  traced ''
  unsaid clock
}

@test "code_names: yes" {
  traced 'balance bad_code_names=3 cut_code_names=1'
  said code_names
  has "$output" "3 records of perf-PID.map or jit-PID.dump are invalid. Only the first 64 MiB"
}

@test "code_names: no" {
  traced ''
  unsaid code_names
}

@test "unrecorded_processes: yes" {
  program plain 'free(malloc(100));'
  printf 'int main(void) { return 0; }\n' >static.c
  gcc -static -o static static.c
  recording -- sh -c './static; ./plain; :'
  said unrecorded_processes
  has "$output" "1 process was not recorded, the first of them process "
}

@test "unrecorded_processes: no" {
  program plain 'free(malloc(100));'
  recording -- sh -c './plain; ./plain; :'
  unsaid unrecorded_processes
}

@test "own_malloc: yes" {
  program own 'free(malloc(10));' 'static char a[1 << 20]; void *malloc(size_t n) { return a; } void *calloc(size_t n, size_t m) { return a; } void *realloc(void *p, size_t n) { return a; }'
  short_function free
  gcc -w -fno-builtin -o own own.c short.s
  recording -- sh -c './own; :'
  said own_malloc
  has "$output" "Calls of the malloc in the executable were not recorded, in process "
  has "$output" "/own)."
}

@test "own_malloc: no" {
  program plain 'free(malloc(100));'
  gcc -w -fno-builtin -no-pie -fno-pic -o plain plain.c -ldl
  recording -- ./plain
  unsaid own_malloc
}

@test "bypassing_objects: yes" {
  deepbind RTLD_DEEPBIND
  said bypassing_objects
  has "$output" "calls.so was opened with RTLD_DEEPBIND, and its calls of malloc were not recorded, in process "
}

@test "bypassing_objects: no" {
  deepbind 0
  unsaid bypassing_objects
}

@test "unexplained_memory: yes" {
  deepbind RTLD_DEEPBIND
  said unexplained_memory
  has "$output" "Recorded blocks do not explain "
}

@test "unexplained_memory: no" {
  deepbind 0
  unsaid unexplained_memory
}

# half_deep BYTES: generated code allocates BYTES with an invalid frame pointer, and main allocates
# 10000.
half_deep() {
  [ "$(uname -m)" = x86_64 ] || skip "the code is for x86-64"
  program ends "void *at = mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); memcpy(at, code, sizeof code); malloc(10000); ((void *(*)(void *(*)(size_t), size_t))at)(malloc, $1);" \
    '#include <sys/mman.h>
static const unsigned char code[] = {0x55, 0x31, 0xed, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0xff, 0xd0, 0x5d, 0xc3};'
  recording --stacks -- ./ends
}

@test "short_stacks: yes" {
  half_deep 10000
  said short_stacks
  has "$output" "The stacks of 50 % of the allocated bytes end before the program's own code, most of them in [code without a file]."
}

@test "short_stacks: no" {
  half_deep 50
  unsaid short_stacks
}

# interpreted OBJECT [BYTES]: call sites of OBJECT allocate 60 % of the bytes, or BYTES of 10,000.
interpreted() {
  workload "put('heaptape.module', 1, ptr='0x5000', size=4096, offset=0, text='00 $1')
put('heaptape.module', 1, ptr='0x6000', size=4096, offset=0, text='00 /home/me/app')
malloc(${2:-6000}, 5), malloc($((10000 - ${2:-6000})), 6)"
}

@test "unnamed_code: yes" {
  interpreted /usr/bin/python3.12
  said unnamed_code
  has "$output" "60 % of the allocated bytes are allocated below functions of Python, and no call stack has a function of the Python program."
  has "$output" "record 'python3 -X perf' (Python 3.12 and later)"
  has "$output" "PYTHONMALLOC=malloc"
  [ "$(jq -c .stack_coverage.interpreted stat.json)" = '{"python":{"allocated_bytes":6000,"named_bytes":0}}' ]
  interpreted /usr/lib/libnode.so.108
  said unnamed_code
  has "$output" "functions of Node.js, and no call stack has a JavaScript function."
  has "$output" "--perf-basic-prof"
  interpreted /usr/lib/jvm/lib/server/libjvm.so
  said unnamed_code
  has "$output" "functions of Java, and no call stack has a Java method."
  has "$output" "-XX:+PreserveFramePointer"
}

@test "unnamed_code: no" {
  local object
  # Not an interpreter, although the names begin like one.
  for object in /usr/bin/node_exporter /usr/bin/python3-config /home/me/app2; do
    interpreted $object
    unsaid unnamed_code
  done
  interpreted /usr/bin/python3.12 4900
  unsaid unnamed_code
  # A perf map named a function of the interpreted program.
  traced '0 1 heaptape.module ptr=0x5000 size=4096 text=00^/usr/bin/python3.12
0 1 heaptape.frame ptr=0x5005 value=1
0 1 heaptape.frame ptr=0x9005 size=1 value=2
name 0x9000 16 py::render
0 20 malloc size=5900 result=16384 site=1
0 20 malloc size=100 result=32768 site=2'
  [ "$(jq -c .stack_coverage.interpreted stat.json)" = '{"python":{"allocated_bytes":6000,"named_bytes":100}}' ]
  unsaid unnamed_code
}

@test "a clean recording has no findings about missing data" {
  program plain 'for (int i = 0; i < 1000; i++) free(malloc(100));'
  recording --stacks -- sh -c './plain; ./plain; :'
  local name
  for name in lost_records missing_spools overwritten_session stopped_early clock code_names turned_off unrecorded_processes own_malloc bypassing_objects unexplained_memory short_stacks \
    ambiguous_order cut_off; do
    unsaid $name
  done
}

@test "ambiguous_order: yes" {
  traced '0 20 malloc size=200 result=4096'
  said ambiguous_order
  has "$output" "The order of 1 event is ambiguous."
}

@test "ambiguous_order: no" {
  # One event of 1,000.
  traced "$(for ((i = 0; i < 997; i++)); do echo "0 20 malloc size=10 result=$((100000 + i * 32))"; done)
0 2000 malloc size=200 result=4096"
  [ "$(jq .events,.order.ambiguous stat.json | xargs)" = "1000 1" ]
  unsaid ambiguous_order
}

@test "cut_off: yes" {
  "$HEAPTAPE_PROGRAMS/make_workload" whole.htw churn 1 200000 >/dev/null
  head -c $(($(stat -c %s whole.htw) / 2)) whole.htw >cut.htw
  "$HEAPTAPE" stat -q --json cut.htw >stat.json || true
  said cut_off
}

@test "cut_off: no" {
  workload 'others(100)'
  unsaid cut_off
}

@test "faster_allocator: yes" {
  results 'b.update(wall_ns=5e5, wall_ratio=0.5, wall_ratio_ci95=[0.4, 0.6], rss_ratio=1.05, peak_rss_bytes=105 * MiB)'
  said faster_allocator r.html
  has "$output" "glibc,X=1 replays the workload in 0.50 × the time of glibc (95 % interval 0.40 to 0.60) with 1.05 × its peak RSS."
}

@test "faster_allocator: no" {
  # In these cases, the allocator needs more memory, the difference is small or uncertain, or there
  # is no interval.
  for with in 'wall_ratio=0.5, wall_ratio_ci95=[0.4, 0.6], peak_rss_bytes=120 * MiB' 'wall_ratio=0.99, wall_ratio_ci95=[0.98, 0.995]' \
    'wall_ratio=0.9, wall_ratio_ci95=[0.7, 1.1]' 'wall_ratio=0.5, wall_ratio_ci95=None'; do
    results "b.update($with)"
    unsaid faster_allocator r.html
  done
}

@test "fastest_uses_more: yes" {
  results 'b.update(wall_ratio=0.5, wall_ratio_ci95=[0.4, 0.6], rss_ratio=1.2, peak_rss_bytes=120 * MiB)'
  said fastest_uses_more r.html
  has "$output" "glibc,X=1 is the fastest, 0.50 × the time of glibc, but has 1.20 × its peak RSS."
}

@test "fastest_uses_more: no" {
  results 'b.update(wall_ratio=0.5, wall_ratio_ci95=[0.4, 0.6], peak_rss_bytes=105 * MiB)'
  unsaid fastest_uses_more r.html
  results 'b.update(wall_ratio=0.5, wall_ratio_ci95=None, peak_rss_bytes=120 * MiB)'
  unsaid fastest_uses_more r.html
}

@test "none_faster: yes" {
  results 'b.update(wall_ratio=0.99, wall_ratio_ci95=[0.9, 1.1])'
  said none_faster r.html
  has "$output" "No allocator tried is measurably faster than glibc on this workload."
}

@test "none_faster: no" {
  results 'b.update(wall_ratio=0.5, wall_ratio_ci95=[0.4, 0.6])'
  unsaid none_faster r.html
  results 'b.update(wall_ratio_ci95=None)'
  unsaid none_faster r.html
}

@test "leanest: yes" {
  results 'b.update(peak_rss_bytes=90 * MiB)'
  said leanest r.html
  has "$output" "glibc,X=1 has the lowest peak RSS, 90.0 MiB; glibc has the highest, 100.0 MiB."
}

@test "leanest: no" {
  results ''
  unsaid leanest r.html
}

@test "fragmentation: yes" {
  results 'b.update(peak_fragmentation=1.25)'
  said fragmentation r.html
  has "$output" "Peak RSS divided by peak live bytes: glibc,X=1 1.25 ×."
}

@test "fragmentation: no" {
  results 'b.update(peak_fragmentation=1.24)'
  unsaid fragmentation r.html
}

@test "below_live: yes" {
  results 'b.update(peak_fragmentation=0.9)'
  said below_live r.html
  has "$output" "at the peak glibc,X=1 has 100.0 MiB, 0.90 × the live bytes."
}

@test "below_live: no" {
  results 'b.update(peak_fragmentation=0.95)'
  unsaid below_live r.html
}

@test "below_live_cleared: yes" {
  results 'b.update(peak_fragmentation=0.5)'
  said below_live_cleared r.html
  has "$output" "at the peak glibc has 100.0 MiB, 1.00 × the live bytes."
}

@test "below_live_cleared: no" {
  results 'a.update(peak_fragmentation=0.5); b.update(peak_fragmentation=0.5)'
  unsaid below_live_cleared r.html
}

# recorded RECORDED MAPPED [MORE]: writes results with a peak of 200 MiB of live bytes. The replay
# used 100 MiB. The program used RECORDED MiB and MAPPED bytes of its own mappings.
recorded() {
  results "a.update(peak_fragmentation=0.5, fidelity={'rss': {'recorded_peak_bytes': $1 * MiB, 'replayed_peak_bytes': 100 * MiB,
  'mean_error': 0.1, 'recorded_mappings_bytes': $2}}); b.update(peak_fragmentation=0.5)"
}

@test "below_live_agrees: yes" {
  recorded 104 4096
  said below_live_agrees r.html
  has "$output" "its heap peaked at 104.0 MiB."
}

@test "below_live_agrees: no" {
  recorded 240 4096
  unsaid below_live_agrees r.html
  results 'a.update(peak_fragmentation=0.5)'
  unsaid below_live_agrees r.html
}

@test "recorded_more: yes" {
  recorded 240 4096
  said recorded_more r.html
  has "$output" "The recorded program peaked at 240.0 MiB, its replay on glibc at only 100.0 MiB."
  has "$output" "replay with --touch all"
}

@test "recorded_more: no" {
  recorded 104 4096
  unsaid recorded_more r.html
  recorded 240 0
  unsaid recorded_more r.html
}

@test "recorded_more_unmapped: yes" {
  recorded 240 0
  said recorded_more_unmapped r.html
  has "$output" "record with --maps to subtract them"
}

@test "recorded_more_unmapped: no" {
  recorded 240 4096
  unsaid recorded_more_unmapped r.html
  recorded 104 0
  unsaid recorded_more_unmapped r.html
}

@test "kept: yes" {
  results 'b.update(rss_after_free_bytes=50 * MiB)'
  said kept r.html
  has "$output" "after all blocks are freed: glibc,X=1 50 %."
}

@test "kept: no" {
  results 'b.update(rss_after_free_bytes=49 * MiB)'
  unsaid kept r.html
}

# calls MIN MAX: the share of calls in the program's CPU time.
calls() {
  results "a.update(fidelity={'program': {'calls_share': $1, 'calls_max_share': $2, 'recorded_calls_cpu_ns': 1e9 * $1, 'cpu_ns': 1e9}})"
}

@test "calls_matter: yes" {
  calls 0.05 None
  said calls_matter r.html
  has "$output" "The calls take at least 5 % of the program's CPU time: 50.0 ms of 1.00 s."
}

@test "calls_matter: no" {
  calls 0.049 0.2
  unsaid calls_matter r.html
  results ''
  unsaid calls_matter r.html
}

@test "calls_hardly_matter: yes" {
  calls 0.01 0.049
  said calls_hardly_matter r.html
  has "$output" "The calls take at most 4.9 % of the program's CPU time, 1.00 s."
  has "$output" "compare memory instead"
}

@test "calls_hardly_matter: no" {
  calls 0.049 0.05
  unsaid calls_hardly_matter r.html
  calls 0.01 None # the time of a replay is not an upper bound
  unsaid calls_hardly_matter r.html
  results ''
  unsaid calls_hardly_matter r.html
}

@test "stat prints the findings at the end, the verdict first, then marked ones, in lines of 80 columns" {
  steps 5 'others(500)
for i in range(2000):
    malloc(2000, 7)
    free(malloc(200, 8), tid=2)'
  heaptape stat -v w.htw
  sed -n '/^findings/,/^$/p' <<<"$output" >found
  cat found
  [ "$(sed -n 2p found | cut -c 1-30)" = "* Live bytes grow linearly, by" ]
  grep -q "^\* .* of the blocks are freed or resized by another thread" found
  grep -q "^- Live bytes peak" found
  [ "$(awk 'length > 80' found | wc -l)" -eq 0 ]
  [ "$(grep -n '^- ' found | head -1 | cut -d: -f1)" -gt "$(grep -n '^\* ' found | tail -1 | cut -d: -f1)" ]
  heaptape stat --brief w.htw
  [ "$(grep -c '^findings' <<<"$output")" -eq 0 ]
}
