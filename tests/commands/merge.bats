load ../helper

slots() {
  "$HEAPTAPE" dump "$1" | sed 's/^\[[^]]*\] //'
}

# NAME PID FIRST: two threads; the second frees a block of the first.
small_workload() {
  "$HEAPTAPE_PROGRAMS/make_trace" $1.ht <<END
process $2 $1
0 $(($3 + 0)) malloc size=32 result=0x1000
0 $(($3 + 200000)) thread.create value=1
1 $(($3 + 500000)) thread.start value=0
1 $(($3 + 1000000)) free ptr=0x1000
end
END
  "$HEAPTAPE" convert -q -o $1.htw $1.ht
}

@test "merge: threads in parallel from a common start, with separate blocks" {
  small_workload a 100 1000000
  small_workload b 200 5000000
  heaptape merge -o c.htw a.htw b.htw
  expect "status 0" [ "$status" -eq 0 ]
  has "$stderr" "c.htw: 8 events, 4 threads"
  "$HEAPTAPE_PROGRAMS/check_truth" c.htw
  run slots c.htw
  [ "$output" = '+0.001000 malloc(32) = #0
+0.001000 malloc(32) = #1
+0.001200 thread.create(thread=2)
+0.001200 thread.create(thread=3)
+0.001500 thread.start(parent=0) after 0:1
+0.001500 thread.start(parent=1) after 1:1
+0.002000 free(#0)
+0.002000 free(#1)' ]
}

# NAME BASE SIZE: a workload with one call site, in the module NAME at BASE.
workload_with_site() {
  "$HEAPTAPE" import -q --format json -o $1.htw - <<END
{"kind":"heaptape.module","pid":7,"tid":7,"time_ns":1,"ptr":"0x$2","size":4096,"offset":0,"text":"00 /$1"}
{"kind":"heaptape.stack","pid":7,"tid":7,"time_ns":1,"site":1,"frames":["0x$(printf %x $((0x$2 + 32)))","0x$(printf %x $((0x$2 + 16)))"]}
{"kind":"malloc","pid":7,"tid":7,"time_ns":2,"size":$3,"result":"0xa000","site":1}
END
}

@test "merge: blocks keep the stacks of their call sites" {
  workload_with_site a 10000 100
  workload_with_site b 20000 300
  "$HEAPTAPE" merge -q -o c.htw a.htw b.htw
  for f in a b c; do "$HEAPTAPE" stat -q --by site --format folded $f.htw >$f.folded; done
  grep '^a+0x10;a+0x20 100$' a.folded
  cmp <(sort a.folded b.folded) <(sort c.folded)
}

@test "merge: with an offset" {
  small_workload a 100 1000000
  small_workload b 200 5000000
  heaptape merge -o c.htw --offset 700us a.htw b.htw
  [ "$status" -eq 0 ]
  run slots c.htw
  [ "${lines[3]}" = '+0.001700 malloc(32) = #1' ]
  heaptape merge -o d.htw --offset 1s --offset 2s a.htw b.htw
  usage_fails "--offset: given 2 times for 2 workloads"
  heaptape merge -o d.htw --offset 5 a.htw b.htw
  usage_fails "--offset: '5' is not a time"
}

@test "merge: large workloads, with the same calls, which can be replayed" {
  "$HEAPTAPE_PROGRAMS/make_workload" a.htw churn 4 20000 30 >/dev/null
  "$HEAPTAPE_PROGRAMS/make_workload" b.htw kinds 3 30000 >/dev/null
  heaptape merge -o c.htw a.htw b.htw a.htw
  [ "$status" -eq 0 ]
  "$HEAPTAPE_PROGRAMS/check_truth" c.htw
  for f in a.htw b.htw a.htw; do "$HEAPTAPE" dump $f; done | sed 's/^[^(]* //; s/#.*//; s/ after.*//; s/thread.*//' | sort > parts
  "$HEAPTAPE" dump c.htw | sed 's/^[^(]* //; s/#.*//; s/ after.*//; s/thread.*//' | sort > whole
  cmp parts whole
  "$HEAPTAPE" stat --json c.htw >out.json
  for f in a b; do "$HEAPTAPE" stat --json $f.htw >$f.json; done
  python3 -c 'import json
a, b, c = (json.load(open(f)) for f in ("a.json", "b.json", "out.json"))
for key in "events", "remote_frees", "live_at_end_blocks", "threads":
  assert c[key] == 2 * a[key] + b[key], key'
  skip_under_sanitizer
  heaptape replay -q -r 1 -a "$HEAPTAPE_PROGRAMS/libtest-verify.so" c.htw
  [ "$status" -eq 0 ]
}

@test "merge: from and to a pipe; a workload without stamps" {
  small_workload a 100 1000000
  small_workload b 200 5000000
  "$HEAPTAPE" merge -q -o c.htw a.htw b.htw
  cat b.htw | "$HEAPTAPE" merge -q a.htw - | cat > d.htw
  cmp c.htw d.htw
  "$HEAPTAPE" convert -q --no-timestamps -f -o b.htw b.ht
  "$HEAPTAPE" merge -q -o e.htw a.htw b.htw
  "$HEAPTAPE_PROGRAMS/check_truth" e.htw
  [ "$(slots e.htw | sed 's/[^ ]* //')" = "$(slots c.htw | sed 's/[^ ]* //')" ]
  heaptape merge - -
  usage_fails "standard input (-) can be given only once"
}

@test "merge: a damaged workload" {
  small_workload a 100 1000000
  head -c -20 a.htw > b.htw
  heaptape merge -o c.htw a.htw b.htw
  fails_with 1 "b.htw: " "cut off"
  [ ! -e c.htw ]
  heaptape merge -o c.htw a.htw none.htw
  fails_with 1 "none.htw: "
}
