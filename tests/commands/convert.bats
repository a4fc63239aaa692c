load ../helper

# a.ht: a small trace of one process with two threads.
small_trace() {
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <<'END'
process 100 prog -x
0 1000 malloc size=32 result=0x1000
0 2000 thread.create value=1
1 2500 thread.start value=0
1 3000 malloc size=48 result=0x2000
1 4000 free ptr=0x1000
0 5000 realloc.begin ptr=0x2000
0 5100 realloc size=96 result=0x3000
0 6000 free ptr=0x3000
1 7000 thread.end
end
END
}

# Two processes; 200 has more events.
two_processes() {
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <<'END'
process 100 first
0 1000 malloc size=32 result=0x1000
process 200 second
0 1000 malloc size=32 result=0x1000
0 2000 free ptr=0x1000
end
END
}

slots() {
  "$HEAPTAPE" dump "$1" | sed 's/^\[[^]]*\] +[0-9.]* //'
}

@test "convert: NAME.htw beside NAME.ht, with slots and waits" {
  small_trace
  heaptape convert a.ht
  expect "status 0" [ "$status" -eq 0 ]
  expect "no output on stdout" [ -z "$output" ]
  has "$stderr" "a.htw: 8 events, 2 threads"
  run slots a.htw
  [ "$output" = "malloc(32) = #0
thread.create(thread=1)
thread.start(parent=0) after 0:1
malloc(48) = #1
free(#0)
realloc(#1, 96) = #1 after 1:1
free(#1)
thread.end()" ]
}

@test "convert: an existing file is kept without -f" {
  small_trace
  echo precious > a.htw
  heaptape convert a.ht
  fails_with 1 "a.htw: exists"
  [ "$(cat a.htw)" = precious ]
  heaptape convert -f a.ht
  [ "$status" -eq 0 ]
  heaptape stat -v a.htw
  [ "$status" -eq 0 ]
}

@test "convert: from a pipe, to a pipe, the same bytes" {
  small_trace
  heaptape convert -o b.htw a.ht
  [ "$status" -eq 0 ]
  cat a.ht | "$HEAPTAPE" convert -q - > c.htw
  cmp b.htw c.htw
  cat a.ht | "$HEAPTAPE" convert -q -o d.htw -
  cmp b.htw d.htw
}

# Process 100 has the most events. Process 200 has the highest peak. Process 300 allocates as many
# bytes as process 200 in total.
peaks() {
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <<'END'
process 100 busy
0 1000 malloc size=3000 result=0x1000
0 1100 free ptr=0x1000
0 1200 malloc size=3000 result=0x1000
0 1300 free ptr=0x1000
0 1400 malloc size=3000 result=0x1000
0 1500 free
0 1600 free
process 200 big
0 1000 malloc size=5000 result=0x2000
0 1100 realloc.begin ptr=0x2000
0 1200 realloc size=2000 result=0x3000
1 1250 realloc.begin ptr=0x3000
1 1300 realloc size=9000000 error=12
0 1400 calloc size=1000 count=6 result=0x2000
process 300 churn
0 1000 malloc size=5000 result=0x2000
1 1100 free ptr=0x2000
0 1200 malloc size=4000 result=0x2000
end
END
}

@test "convert: selects the process with the highest peak of live bytes, or --pid" {
  two_processes
  heaptape convert -o most.htw a.ht
  [ "$status" -eq 0 ]
  has "$stderr" "converted process 200 of 2: second (peak live 32 B)"
  has "$stderr" "the next by peak live bytes is process 100: first (32 B)"
  has "$stderr" "2 events"
  heaptape convert --pid 100 -o first.htw a.ht
  [ "$status" -eq 0 ]
  has "$stderr" "1 event, 1 thread, "
  heaptape convert --pid 300 -o none.htw a.ht
  fails_with 1 "a.ht: the trace contains no events of process 300; it contains processes 100, 200"
  [ ! -e none.htw ]
  heaptape convert --pid x a.ht
  usage_fails "--pid: 'x' is not one of PID|all"
}

@test "convert: the selected process has stat's peak, and the next ones are listed" {
  peaks
  heaptape convert -o big.htw a.ht
  [ "$status" -eq 0 ]
  has "${stderr_lines[0]}" "converted process 200 of 3: big (peak live 7.8 KiB)"
  has "${stderr_lines[1]}" "process 300: churn (4.9 KiB)"
  has "${stderr_lines[2]}" "process 100: busy (2.9 KiB)"
  [ "$("$HEAPTAPE" stat --json big.htw | jq .peak_live_bytes)" -eq 8000 ]
  [ "$("$HEAPTAPE" stat --json a.ht | jq .timeline.pid)" -eq 200 ]
  "$HEAPTAPE" convert -q --pid 300 -o one.htw a.ht
  [ "$("$HEAPTAPE" stat --json one.htw | jq .peak_live_bytes)" -eq 5000 ]
}

@test "convert: finds the peak of a process that makes few calls, in its last call" {
  {
    echo "process 100 busy"
    for i in {1..30}; do echo "0 ${i}000 malloc size=10 result=0x${i}000"; done
    printf '%s\n' "process 200 small" "0 100 malloc size=20 result=0x1000" round \
      "0 40000 malloc size=400 result=0x2000" round end
  } | "$HEAPTAPE_PROGRAMS/make_trace" a.ht
  heaptape convert -o a.htw a.ht
  has "${stderr_lines[0]}" "process 200 of 2: small (peak live 420 B)"
  has "${stderr_lines[1]}" "process 100: busy (300 B)"
}

# many PID BLOCKS SIZE: lines for BLOCKS live blocks.
many() {
  awk -v pid="$1" -v n="$2" -v size="$3" 'BEGIN {
    print "process", pid, "p" pid
    for (i = 1; i <= n; i++) {
      printf "0 %d malloc size=%d result=0x%x\n", i, size, i * (size + 32)
      if (i % 10000 == 0)
        print "round"
    }
  }'
}

@test "convert: peaks above the table limit are estimated, except in the converted process" {
  # About 235,000 blocks of process 200 are sampled, so the standard error is 0.16 %. The estimate
  # is 57.45 MiB and may differ by 0.87 %.
  { many 100 20000 999; many 200 602400 100; many 300 1 59000000; many 400 1 61000000; echo end; } |
    "$HEAPTAPE_PROGRAMS/make_trace" a.ht
  heaptape convert -o a.htw a.ht
  has "${stderr_lines[0]}" "process 400 of 4: p400 (peak live 58.2 MiB)"
  has "${stderr_lines[1]}" "process 200: p200 (about 57."
  has "${stderr_lines[2]}" "process 300: p300 (about 56.3 MiB)"
  has "${stderr_lines[3]}" "process 100: p100 (about 19."
}

# Two concurrent processes, one of which calls exec, and a process without events.
several_processes() {
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <<'END'
process 100 first
process 200 second
0 1000 malloc size=32 result=0x1000
0 2000 free ptr=0x1000
round
process 300 idle
process 100 first by exec
0 9000 malloc size=8 result=0x2000
round
END
}

@test "convert --pid all: a workload for each process, in one pass" {
  two_processes
  heaptape convert --pid all a.ht
  expect "status 0" [ "$status" -eq 0 ]
  expect "one line for each" [ "${#stderr_lines[@]}" -eq 2 ]
  has "$stderr" "a.100.htw: 1 event,"
  has "$stderr" "a.200.htw: 2 events"
  "$HEAPTAPE" convert -q --pid 100 -o one.htw a.ht
  cmp one.htw a.100.htw
  "$HEAPTAPE" convert -q --pid 200 -o two.htw a.ht
  cmp two.htw a.200.htw
  heaptape convert --pid all a.ht
  fails_with 1 "a.100.htw: exists"
  cat a.ht | "$HEAPTAPE" convert -q --pid all -o 'x-%p-y.htw' -
  cmp one.htw x-100-y.htw
  cmp two.htw x-200-y.htw
  heaptape convert -q --pid all -o out.htw a.ht
  cmp two.htw out.200.htw
  heaptape convert -q --pid all -o - a.ht
  usage_fails "--pid all writes several files"
  cat a.ht | { heaptape convert -q --pid all -; usage_fails "--pid all writes several files"; }
}

@test "convert --pid all: images of one pid, a process without events, a truncated trace" {
  several_processes
  heaptape convert --pid all a.ht
  expect "status 0" [ "$status" -eq 0 ]
  has "$stderr" "cut off"
  [ "$(ls *.htw | tr '\n' ' ')" = "a.100.htw a.200.htw " ]
  "$HEAPTAPE_PROGRAMS/make_trace" b.ht <<'END'
process 100 first
0 1000 malloc size=32 result=0x1000
process 100 second
0 2000 malloc size=32 result=0x1000
0 3000 free ptr=0x1000
end
END
  heaptape convert --pid all b.ht
  has "$stderr" "b.100.htw: 1 event,"
  has "$stderr" "b.100-2.htw: 2 events"
}

@test "convert --pid all: the files left after an error" {
  two_processes
  python3 - <<'END'
b = bytearray(open("a.ht", "rb").read())
b[-60] ^= 1
open("b.ht", "wb").write(b)
END
  heaptape convert --pid all b.ht
  [ "$status" -eq 1 ]
  for f in b.*.htw; do [ ! -e "$f" ] || "$HEAPTAPE" check -q "$f"; done
  [ -z "$(ls | grep tmp)" ]
}

@test "convert: reports how many uses across threads needed a dependency" {
  small_trace
  heaptape convert a.ht
  has "$stderr" "a.htw: 2 of 3 uses across threads needed a dependency, the order of 0 events was repaired"
}

@test "--quiet: a truncated recording and lost records are still reported" {
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <<'END'
process 100 prog
0 1000 malloc size=32 result=0x1000
0 2000 free ptr=0x1000
round
END
  local at cut
  at=$(stat -c %s a.ht)
  cut="the recording is cut off at byte $at"
  for command in "convert -o a.htw" "slice -o b.htw" "merge -o c.htw" "export -F android -o d.txt" \
    "dump" "stat" "replay -r 1" "sql --csv"; do
    query=()
    [ "$command" != "sql --csv" ] || query=("SELECT count(*) FROM events")
    # shellcheck disable=SC2086
    heaptape $command -q a.ht "${query[@]}"
    expect "$command" [ "$status" -eq 0 ]
    expect "$command: $stderr" grep -q "^heaptape: a.ht: $cut" <<<"$stderr"
    [ "$(grep -c . <<<"$stderr")" -eq 1 ]
  done
  "$HEAPTAPE_PROGRAMS/make_trace" l.ht <<'END'
process 100 prog
0 1000 malloc size=32 result=0x1000
lost 0 5
0 2000 free ptr=0x1000
end
END
  heaptape convert -q l.ht
  [ "$status" -eq 0 ]
  has "$stderr" "l.htw: " "5 words are lost"
}

@test "convert: a truncated recording is converted up to its end" {
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <<'END'
process 100 prog
0 1000 malloc size=32 result=0x1000
0 2000 free ptr=0x1000
round
END
  heaptape convert a.ht
  [ "$status" -eq 0 ]
  grep -qx "heaptape: a.ht: the recording is cut off at byte $(stat -c %s a.ht); converted the events up to that point" <<<"$stderr"
  run slots a.htw
  [ "${#lines[@]}" -eq 2 ]
  small_trace
  head -c -10 a.ht > b.ht
  heaptape convert b.ht
  [ "$status" -eq 0 ]
  has "$stderr" "b.ht: cut off inside a frame"
}

@test "convert: a damaged trace is refused without an output" {
  small_trace
  python3 - <<'END'
b = bytearray(open("a.ht", "rb").read())
b[-60] ^= 1
open("b.ht", "wb").write(b)
END
  heaptape convert b.ht
  fails_with 1 "b.ht: " "at byte "
  [ -z "$(ls | grep htw)" ]
}

@test "convert: a workload is not a trace" {
  small_trace
  heaptape convert -o b.htw a.ht
  heaptape convert -o c.htw b.htw
  fails_with 1 "b.htw: is a workload, expected a trace"
  [ ! -e c.htw ]
}

@test "convert --strict: fails on ambiguities, but not on repaired events" {
  small_trace
  heaptape convert --strict a.ht
  [ "$status" -eq 0 ]
  # An allocation stamped before the free of its address.
  "$HEAPTAPE_PROGRAMS/make_trace" b.ht <<'END'
process 100 prog
0 1000 malloc size=32 result=0x1000
1 4900 malloc size=48 result=0x1000
0 5000 free ptr=0x1000
1 6000 free ptr=0x1000
end
END
  heaptape convert --strict b.ht
  [ "$status" -eq 0 ]
  heaptape stat --json b.htw
  has "$output" '"repaired": 1'
  "$HEAPTAPE_PROGRAMS/make_trace" c.ht <<'END'
process 100 prog
0 1000 malloc size=32 result=0x1000
0 2000 free ptr=0x5000
end
END
  heaptape convert --strict c.ht
  fails_with 1 "c.ht: --strict: 1 free has no recorded allocation (first: 0x5000 in thread 100 at +0.000002 s)"
  [ ! -e c.htw ]
  heaptape convert c.ht
  [ "$status" -eq 0 ]
  run slots c.htw
  [ "${lines[1]}" = "preexisting(0) = #1" ]
  [ "${lines[2]}" = "free(#1)" ]
  "$HEAPTAPE_PROGRAMS/make_trace" d.ht <<'END'
process 100 prog
0 1000 malloc size=32 result=0x1000
lost 0 7
0 2000 malloc size=32 result=0x2000
end
END
  heaptape convert --strict d.ht
  fails_with 1 "d.ht: --strict: 7 words are lost (first: in thread 100 at +0.000000 s)"
}

@test "convert --strict: the first event of each fault" {
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <<'END'
process 100 prog
0 1000 malloc size=32 result=0x1000
0 2000 malloc size=32 result=0x1000
0 3000 malloc size=32 result=0x1000
1 4000 free ptr=0x2000
1 5000 free ptr=0x3000
lost 1 1
1 6000 malloc size=32 result=0x4000
end
END
  heaptape convert --strict a.ht
  [ "$status" -eq 1 ]
  [ "$stderr" = "heaptape: a.ht: --strict: 2 events have an ambiguous order (first: 0x1000 in thread 100 at +0.000002 s), 2 frees have no recorded allocation (first: 0x2000 in thread 101 at +0.000004 s), 1 word is lost (first: in thread 101 at +0.000000 s)" ]
  [ ! -e a.htw ]
}

@test "convert --no-timestamps: the order is kept" {
  small_trace
  heaptape convert -o a.htw a.ht
  heaptape convert --no-timestamps -o b.htw a.ht
  [ "$status" -eq 0 ]
  [ "$(slots a.htw)" = "$(slots b.htw)" ]
  run "$HEAPTAPE" dump b.htw
  has "${lines[4]}" "+0.000000"
}

# rate_of TRACE: prints the clock rate of its workload, computed from the time of stamp 2000, which
# is 1000 ticks after the first stamp.
rate_of() {
  heaptape convert -f -o r.htw "$1"
  "$HEAPTAPE" dump r.htw | sed -n '2s/^\[[^]]*\] +\([0-9.]*\).*/\1/p'
}

@test "convert: a complete trace has the clock rate of the whole recording" {
  printf 'process 100 prog\n0 1000 malloc size=32 result=0x1000\n0 2000 free ptr=0x1000\n' >lines
  { cat lines && echo end; } | "$HEAPTAPE_PROGRAMS/make_trace" first.ht
  { cat lines && echo end 100000000; } | "$HEAPTAPE_PROGRAMS/make_trace" whole.ht
  { cat lines && echo round; } | "$HEAPTAPE_PROGRAMS/make_trace" cut.ht
  expect "the first measured rate" [ "$(rate_of first.ht)" = 0.000002 ]
  expect "the rate over the whole recording" [ "$(rate_of whole.ht)" = 0.000020 ]
  expect "truncated: the first measured rate" [ "$(rate_of cut.ht)" = 0.000002 ]
  heaptape convert -f --pid all -o w-%p.htw whole.ht
  expect "the rate for all processes" [ "$("$HEAPTAPE" dump w-100.htw | grep -c '+0.000020 free')" -eq 1 ]
}

# many_trace FILE: one thread with 160,000 events in many rounds, enough to keep all threads of the
# converter busy.
many_trace() {
  awk 'BEGIN { print "process 100 prog"
    for (i = 0; i < 80000; i++) {
      printf "0 %d malloc size=%d result=0x%x\n", 1000 + 20 * i, 16 + i * 7919 % 1000, 4096 + 64 * (i % 1000)
      printf "0 %d free ptr=0x%x\n", 1010 + 20 * i, 4096 + 64 * (i % 1000)
      if (i % 5000 == 0) print "round" }
    print "end" }' | "$HEAPTAPE_PROGRAMS/make_trace" "$1"
}

@test "convert: the workload does not depend on the number of CPUs" {
  many_trace a.ht
  heaptape convert -o all.htw a.ht
  taskset -c "$(taskset -pc $$ | sed 's/.*: *\([0-9]*\).*/\1/')" "$HEAPTAPE" convert -q -o one.htw a.ht
  cmp all.htw one.htw
  expect "all events" [ "$("$HEAPTAPE" stat --json all.htw | sed -n 's/^  "events": *\([0-9]*\).*/\1/p')" = 160000 ]
}

@test "convert: a trace with stacks of a script gives the same bytes each time" {
  skip_under_sanitizer
  "$HEAPTAPE" record -q --stacks -o a.ht -- python3 -c 'import json'
  for run in 1 2 3; do
    heaptape convert -o "$run.htw" a.ht
    cmp 1.htw "$run.htw"
  done
  expect "several sites" [ "$("$HEAPTAPE" stat --by site --json 1.htw | jq ".sites | length")" -gt 10 ]
}

@test "convert: an error in any of its threads ends it with one line" {
  many_trace a.ht
  run timeout 120 "$HEAPTAPE" convert -o /dev/full a.ht
  expect "the output's error" [ "$output" = "heaptape: /dev/full: cannot write at byte 0: No space left on device" ]
  size=$(stat -c %s a.ht)
  cp a.ht b.ht
  printf X | dd of=b.ht bs=1 seek=$((size / 2)) conv=notrunc status=none
  run timeout 120 "$HEAPTAPE" convert -o b.htw b.ht
  expect "status 1" [ "$status" -eq 1 ]
  expect "the input's error" [ "${#lines[@]}" -eq 1 ]
  has "$output" "heaptape: b.ht: "
  expect "no workload" [ ! -e b.htw ]
}

@test "convert: leaves no files when it is killed while writing" {
  many_trace a.ht
  # On one CPU, the main thread writes the file. If the file becomes larger than one block, the main
  # thread gets SIGXFSZ.
  cpu=$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')
  run bash -c 'ulimit -c 0 -f 1; exec taskset -c "$@"' - "$cpu" "$HEAPTAPE" convert -q -o out.htw a.ht
  expect "it was killed" [ "$status" -eq 153 ]
  for left in out.htw*; do
    expect "no $left" [ ! -e "$left" ]
  done
}

@test "convert: a trace without events" {
  printf 'process 100 prog\nend\n' | "$HEAPTAPE_PROGRAMS/make_trace" a.ht
  heaptape convert a.ht
  fails_with 1 "a.ht: the trace contains no events"
}
