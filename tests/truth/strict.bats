# Real threaded programs: a strict conversion is unambiguous, and the replay frees every block once,
# as it was allocated. HEAPTAPE_TEST_TIMES=N makes the programs run N times as long.
load ../helper

times=${HEAPTAPE_TEST_TIMES:-1}

needs() {
  local tool
  for tool; do
    command -v "$tool" >tool || skip "$tool is not installed"
  done
}

# exact MINIMUM: checks t.ht, which must have at least MINIMUM events.
exact() {
  heaptape convert -f --strict -o t.htw t.ht
  expect "status 0" [ "$status" -eq 0 ]
  echo "$stderr"
  "$HEAPTAPE_PROGRAMS/check_truth" t.htw
  "$HEAPTAPE" stat --json t.htw >stat
  python3 -c 'import json, sys
s = json.load(open("stat"))
print("repaired:", s["order"]["repaired"])
assert s["order"]["ambiguous"] == 0 and s["unmatched_frees"] == 0
assert s["events"] >= int(sys.argv[1]), s["events"]' "$1"
  heaptape replay -q -r 1 -a "$HEAPTAPE_PROGRAMS/libtest-verify.so" t.htw
  expect "a replay that the verifying allocator passes" [ "$status" -eq 0 ]
}

@test "strict: churn_mt, 2 and 8 threads" {
  skip_under_sanitizer
  for threads in 2 8; do
    "$HEAPTAPE" record -q -f -o t.ht -- "$HEAPTAPE_PROGRAMS/churn_mt" $threads $((160000 * times / threads)) 2>said
    exact 300000
  done
}

@test "strict: redis-server with threads for input and output" {
  skip_under_sanitizer
  needs redis-server redis-benchmark redis-cli
  "$HEAPTAPE" record -q -f -o t.ht -- redis-server --port 0 --unixsocket "$PWD/s" --save '' \
    --io-threads 4 --io-threads-do-reads yes >server 2>&1 3>&- &
  server=$!
  answers() { redis-cli -s s ping >pong 2>&1; }
  wait_until answers
  # With fewer CPUs than threads, each request costs a time slice: pipelining makes better use of
  # it.
  redis-benchmark -s s -q -n $((20000 * times)) -c 64 -P 32 -r 10000 -d 100 -t set,get >benchmark
  redis-cli -s s shutdown nosave
  wait "$server"
  exact 50000
}

@test "strict: Python with threads" {
  skip_under_sanitizer
  needs python3
  cat >threads.py <<'PY'
import json, queue, sys, threading, zlib
work, done = queue.Queue(64), queue.Queue()
def run():
    while (item := work.get()) is not None:
        text = json.dumps({str(i): "x" * (i % 300) for i in range(item)}).encode()
        done.put((item, zlib.compress(text * 4), text[: item * 3]))
threads = [threading.Thread(target=run) for _ in range(6)]
for t in threads: t.start()
n = 300 * int(sys.argv[1])
for i in range(n): work.put(20 + i % 50)
for t in threads: work.put(None)
got = [done.get() for _ in range(n)]
for t in threads: t.join()
print(sum(len(zlib.decompress(z)) for _, z, _ in got))
PY
  PYTHONMALLOC=malloc "$HEAPTAPE" record -q -f -o t.ht -- "$(python3 -c 'import sys; print(sys.executable)')" threads.py "$times"
  exact 100000
}

@test "strict: a C++ program with threads" {
  skip_under_sanitizer
  [ -x "$HEAPTAPE_PROGRAMS/pipeline" ] || skip "was built without a C++ compiler"
  "$HEAPTAPE" record -q -f -o t.ht -- "$HEAPTAPE_PROGRAMS/pipeline" 5 $((4000 * times)) >said
  exact 100000
  "$HEAPTAPE" record -q -f -a jemalloc -o t.ht -- "$HEAPTAPE_PROGRAMS/pipeline" 3 $((4000 * times)) >said || skip "jemalloc is not installed"
  exact 100000
}

@test "strict: through pipes from the trace to the replay" {
  skip_under_sanitizer
  "$HEAPTAPE" record -q -f -o t.ht -- "$HEAPTAPE_PROGRAMS/churn_mt" 3 20000 2>said
  cat t.ht | "$HEAPTAPE" convert -q -o - - | "$HEAPTAPE" replay -r 1 --json -a "$HEAPTAPE_PROGRAMS/libtest-verify.so" - >verified
  "$HEAPTAPE" stat --json t.ht >stat
  python3 -c 'import json
r, s = json.load(open("verified")), json.load(open("stat"))
assert r["runs"][0]["events"] > 100000 and r["peak_live_bytes"] == s["peak_live_bytes"]'
  "$HEAPTAPE" allocators --json | grep -A3 '"jemalloc"' | grep -q '"available": true' || skip "jemalloc is not installed"
  cat t.ht | "$HEAPTAPE" convert -q -o - - | "$HEAPTAPE" replay -r 1 -a jemalloc - >out
  has "$(cat out)" jemalloc
}
