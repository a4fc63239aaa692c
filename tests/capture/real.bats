load trace

# Common programs behave the same under the recorder.

# needs PROGRAM...
needs() {
  skip_under_sanitizer
  local program
  for program in "$@"; do
    command -v "$program" >where || skip "no $program"
  done
}

# same COMMAND...: runs it without and with the recorder. Output, errors and status (0) must be
# equal, except for times.
same() {
  local traced=0
  timeout 120 "$@" >want 2>want.err || { cat want.err && return 1; }
  timeout 120 "$HEAPTAPE" record -q -f -o t.ht -- "$@" >got 2>got.err || traced=$?
  sed -i 's/ in [0-9.]*s$//' want.err got.err
  diff want got && diff want.err got.err && [ "$traced" -eq 0 ] || { echo "status $traced" && return 1; }
}

# whole [MANY]: the main process of the trace has at least MANY events, and their order is
# unambiguous.
whole() {
  "$HEAPTAPE" convert -q -f --strict -o t.htw t.ht
  "$HEAPTAPE" stat --json t.htw >stat.json
  [ "$(sed -n 's/^  "events": \([0-9]*\),/\1/p' stat.json)" -ge "${1:-1000}" ]
}

# every_process N: the trace has at least N processes, and no process lost records.
every_process() {
  "$HEAPTAPE_PROGRAMS/trace_lines" -p t.ht | awk '$3 || $5 { print; bad = 1 } END { exit bad }'
  [ "$("$HEAPTAPE_PROGRAMS/trace_lines" -p t.ht | wc -l)" -ge "$1" ]
}

@test "python3: its own tests of json, re and threads" {
  needs python3
  python=$(python3 -c 'import sys; print(sys.executable)')
  "$python" -c 'import test.test_re, test.test_json' 2>err || skip "python3 comes without its tests"
  # Without the tests of test_re that limit the time.
  cat >all.py <<'PY'
import unittest
names = ['test.test_re', 'test.test_json.test_dump', 'test.test_json.test_scanstring', 'test.test_json.test_decode',
         'test.test_threading_local']
def tests(suite):
    for t in suite:
        yield from tests(t) if isinstance(t, unittest.TestSuite) else [t]
limited = ('test_search_anchor_at_beginning', 'test_regression_gh94675')
all = [t for t in tests(unittest.defaultTestLoader.loadTestsFromNames(names)) if t.id().split('.')[-1] not in limited]
exit(not unittest.TextTestRunner(verbosity=0).run(unittest.TestSuite(all)).wasSuccessful())
PY
  same "$python" all.py
  whole 20000
}

@test "python3: json, re, threads and subprocesses" {
  needs python3
  cat >all.py <<'PY'
import json, queue, re, subprocess, sys, threading
data = [{'id': i, 'name': 'n%d' % i, 'tags': ['t%d' % (i * k % 17) for k in range(5)]} for i in range(3000)]
text = json.dumps(data)
assert json.loads(text) == data
print(len(re.findall(r'"name": "(\w+)"', text)), re.sub(r'(\d)(\d)', r'\2\1', text[:80]))
jobs, done = queue.Queue(), queue.Queue()
def work():
    while (n := jobs.get()) is not None:
        done.put(sum(len(str(x)) for x in range(n)))
threads = [threading.Thread(target=work) for _ in range(8)]
for t in threads: t.start()
for n in range(400): jobs.put(n)
for t in threads: jobs.put(None)
for t in threads: t.join()
print(sum(done.get() for _ in range(400)))
for i in range(5):
    print(subprocess.run([sys.executable, '-S', '-c', 'print(%d * "x")' % i], capture_output=True, text=True).stdout)
PY
  python=$(python3 -c 'import sys; print(sys.executable)')
  same env PYTHONMALLOC=malloc "$python" -S all.py
  whole 100000
  every_process 6
}

@test "perl" {
  needs perl
  cat >all.pl <<'PL'
my %count;
$count{$_ * 7919 % 10007} .= "x$_," for 1 .. 50000;
print join(' ', map { length $count{$_} } (sort { $a <=> $b } keys %count)[0 .. 20]), "\n";
for my $n (1 .. 5) {
    my $pid = fork;
    if (!$pid) { my @lines = map { "$_" x $n } 1 .. 1000; exit(scalar(@lines) == 1000 ? $n : 99) }
    waitpid $pid, 0;
    print $? >> 8, "\n";
}
print `echo from a child`;
PL
  same perl all.pl
  whole 50000
  every_process 6
}

@test "git: commit, clone, log, gc" {
  needs git
  cat >all.sh <<'SH'
set -e
rm -rf one two
export GIT_CONFIG_NOSYSTEM=1 HOME=$PWD GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a
export GIT_COMMITTER_EMAIL=a@b GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'
git init -q one
cd one
for n in 1 2 3 4 5; do
    seq "$n" 2000 >numbers
    seq 1 "$n" >"file$n"
    git add .
    git commit -q -m "number $n"
done
cd ..
git clone -q --no-local one two
cd two
git gc -q --aggressive
git log -p --stat | cksum
git rev-parse HEAD
git fsck --no-progress
SH
  same sh all.sh
  every_process 15
}

@test "gcc" {
  needs gcc
  { echo '#include <stdio.h>'; echo '#include <stdlib.h>'; echo '#include <string.h>'; } >one.c
  for n in $(seq 25); do
    echo "int f$n(int n) { int s = 0; for (int i = 0; i < n; i++) s += i * $n ^ s; printf(\"%d\", s); return s; }" >>one.c
  done
  same sh -c 'gcc -O2 -g -c -o one.o one.c && cksum one.o'
  every_process 3
}

@test "sqlite3" {
  needs sqlite3
  cat >script.sql <<'SQL'
CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
  INSERT INTO t SELECT i, 'text ' || (i * 7919 % 1000), i / 3.0 FROM n;
CREATE INDEX tb ON t(b);
SELECT b, count(*), sum(a) FROM t GROUP BY b ORDER BY sum(a) DESC LIMIT 5;
UPDATE t SET b = upper(b) WHERE a % 3 = 0;
DELETE FROM t WHERE a % 5 = 0;
SELECT count(*), max(length(b)) FROM t;
VACUUM;
PRAGMA integrity_check;
SQL
  same sqlite3 :memory: '.read script.sql'
  whole 50000
}

# answers: the redis-server at the socket s responds.
answers() {
  redis-cli -s s ping >pong 2>&1
}

# redis REQUESTS OPTION...: records a server; its clients are not recorded.
redis() {
  local requests=$1
  shift
  needs redis-server redis-benchmark redis-cli
  "$HEAPTAPE" record -q -f -o t.ht -- redis-server --port 0 --unixsocket "$PWD/s" --save '' "$@" >server 2>&1 3>&- &
  server=$!
  wait_until answers
  redis-benchmark -s s -q -n "$requests" -c 8 -r 1000 -t set,hset >benchmark
  redis-cli -s s info keyspace | grep -q 'db0:keys='
  redis-cli -s s shutdown nosave
  wait "$server"
  whole 2000
}

@test "redis-server with redis-benchmark" {
  redis 5000
}

@test "redis-server, controlled from outside: the trace has only the time between start and stop" {
  needs redis-server redis-benchmark redis-cli
  seconds=${HEAPTAPE_TEST_SECONDS:-0.5}
  "$HEAPTAPE" record -q -f -o t.ht --start=paused -- redis-server --port 0 --unixsocket "$PWD/s" --save '' >server 2>&1 3>&- &
  recorder=$!
  wait_until answers
  server=$(redis-cli -s s info server | tr -d '\r' | sed -n 's/^process_id://p')
  redis-benchmark -s s -q -n 1000000000 -c 4 -r 1000 -t set,hset >benchmark 2>&1 3>&- &
  benchmark=$!
  sleep 0.3
  start_ns=$(date +%s%N)
  "$HEAPTAPE" ctl "$server" start
  # On a busy machine, the server may not run at the start and the end.
  wait_until has_events "$server" 1
  running_ns=$(date +%s%N)
  sleep "$seconds"
  want=$(($(date +%s%N) - running_ns))
  "$HEAPTAPE" ctl "$server" sync
  events=$("$HEAPTAPE" ctl "$server" status --json | jq .events)
  wait_until has_events "$server" $((events + 1))
  wait_until has_events "$server" 6000
  size=$(stat -c %s t.ht)
  [ "$size" -gt 1000 ]
  "$HEAPTAPE" ctl "$server" stop
  stop_ns=$(date +%s%N)
  size=$(stat -c %s t.ht)
  sleep 0.3
  [ "$(stat -c %s t.ht)" -le $((size + 4096)) ]
  kill "$benchmark"
  redis-cli -s s shutdown nosave
  wait "$recorder"
  "$HEAPTAPE" check -q t.ht
  "$HEAPTAPE" convert -q -f -o t.htw t.ht
  for file in t.ht t.htw; do
    "$HEAPTAPE" stat --json "$file" >stat
    awk -v want="$want" -v most=$((stop_ns - start_ns)) \
      '/"duration_ns"/ { ns = $2 + 0; print want " to " ns " of " most " ns"; exit !(ns >= want * 0.99 && ns < most + 0.1e9) }' stat
    awk '/"events"/ { exit !($2 + 0 > 5000) }' RS=, stat
  done
  # All calls of the malloc API are within the recorded time.
  "$HEAPTAPE" dump --format json t.ht | grep -v '"thread' | sed 's/.*"time_ns":\([0-9]*\).*/\1/' |
    awk -v most=$((stop_ns - start_ns)) 'NR == 1 || $1 < from { from = $1 } $1 > to { to = $1 }
      END { print to - from " of " most " ns"; exit !(to - from < most + 0.1e9) }'
  "$HEAPTAPE" replay -q t.htw
}

@test "redis-server with threads for input and output" {
  # The threads of the server spin. With fewer CPUs than threads, each request costs a time slice.
  redis 200 --io-threads 4 --io-threads-do-reads yes
}

@test "node, with workers and children" {
  needs node
  cat >all.js <<'JS'
const { Worker } = require('worker_threads');
const { execFileSync } = require('child_process');
const crypto = require('crypto');
const code = `const { parentPort, workerData } = require('worker_threads');
  let all = []; for (let i = 0; i < 20000; i++) all.push({ i, text: 'n' + i * workerData });
  parentPort.postMessage(JSON.stringify(all).length);`;
const workers = [1, 2, 3].map((n) => new Promise((done) =>
  new Worker(code, { eval: true, workerData: n }).on('message', done)));
Promise.all(workers).then((lengths) => {
  console.log(lengths.join(), crypto.createHash('sha256').update('x'.repeat(1e6)).digest('hex'));
  console.log(execFileSync('/bin/echo', ['from a child']).toString());
  console.log(Buffer.concat(Array.from({ length: 500 }, (_, i) => Buffer.alloc(i, i))).length);
});
JS
  same node all.js
  whole 10000
}

@test "a threaded C++ program with exceptions" {
  needs c++
  cat >all.cc <<'CC'
#include <atomic>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static std::atomic<long> thrown;

static long work(int seed)
{
    std::map<std::string, std::vector<std::unique_ptr<std::string>>> all;
    for (int i = 0; i < 3000; i++) {
        auto &v = all["key " + std::to_string(i * seed % 101)];
        v.push_back(std::make_unique<std::string>(static_cast<size_t>(i % 300), 'x'));
        try {
            if (i % 10 == 0)
                throw std::runtime_error("some text that is long enough for the heap " + std::to_string(i));
        } catch (const std::exception &e) {
            thrown += static_cast<long>(std::string(e.what()).size());
        }
    }
    long sum = 0;
    for (auto &[key, v] : all)
        for (auto &p : v)
            sum += static_cast<long>(p->size() + key.size());
    return sum;
}

int main()
{
    std::vector<std::future<long>> results;
    for (int i = 1; i <= 8; i++)
        results.push_back(std::async(std::launch::async, work, i));
    for (auto &r : results)
        std::cout << r.get() << "\n";
    std::cout << thrown << std::endl;
}
CC
  c++ -std=c++17 -O1 -pthread -o all all.cc || skip "no C++17"
  same ./all
  whole 50000
}

@test "bash, with many children" {
  needs bash
  cat >all.sh <<'SH'
for ((i = 0; i < 100; i++)); do
    x=$(echo "$i" | tr 0-9 a-j)
    (y=$x$x; all[i]=$y; [ "$y" = "$x$x" ]) || echo bad
    text+=$x
done
echo "$text"
for ((i = 0; i < 20; i++)); do (exit "$i") & done
wait
declare -A map
for ((i = 0; i < 3000; i++)); do map[$((i * 7919 % 1009))]+=$i,; done
echo "${#map[@]} ${#map[5]}"
SH
  same bash all.sh
  every_process 200
}

@test "a daemon that forks twice, and outlives the program that started it" {
  skip_under_sanitizer
  record "$HEAPTAPE_PROGRAMS/forks" daemon
  [ "$status" -eq 0 ]
  counts_as_told
  [ "$("$HEAPTAPE_PROGRAMS/trace_lines" -p t.ht | wc -l)" -eq 3 ]
}
