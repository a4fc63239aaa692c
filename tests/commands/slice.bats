load ../helper

# a.htw: two threads, a mark, a block passed between them, and a block that is never freed.
small_workload() {
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <<'END'
process 100 prog
0 1000000 malloc size=32 result=0x1000
0 1100000 malloc size=64 result=0x4000
0 1500000 memalign size=100 align=64 result=0x5000
0 2000000 thread.create value=1
1 2500000 thread.start value=0
1 3000000 malloc size=48 result=0x2000
0 3500000 mark text=warm
1 4000000 free ptr=0x1000
0 5000000 realloc.begin ptr=0x2000
0 5100000 realloc size=96 result=0x3000
0 6000000 free ptr=0x3000
0 6500000 mark text=done
0 6600000 free ptr=0x5000
1 7000000 thread.end
end
END
  "$HEAPTAPE" convert -q -o a.htw a.ht
}

slots() {
  "$HEAPTAPE" dump "$1" | sed 's/^\[[^]]*\] +[0-9.]* //'
}

valid() {
  "$HEAPTAPE_PROGRAMS/check_truth" "$@"
}

@test "slice: by event numbers; live blocks exist from the start" {
  small_workload
  heaptape slice -o b.htw --from 6 --to 11 a.htw
  expect "status 0" [ "$status" -eq 0 ]
  has "$stderr" "b.htw: 5 events, 4 preexisting blocks"
  valid b.htw
  run slots b.htw
  [ "$output" = 'mark("warm")
preexisting(32) = #0
free(#0)
preexisting(48) = #1
realloc(#1, 96) = #1
free(#1)
mark("done")
preexisting(64) = #2
preexisting(100) = #3' ]
  heaptape replay -q -r 1 -a "$HEAPTAPE_PROGRAMS/libtest-verify.so" b.htw
  [ "$status" -eq 0 ]
}

@test "slice: two parts make the whole" {
  small_workload
  for at in 0 1 4 7 9; do
    "$HEAPTAPE" slice -q -f -o b.htw --to $at a.htw 2>err || has "$(cat err)" "the part contains no events"
    "$HEAPTAPE" slice -q -f -o c.htw --from $at a.htw
    valid c.htw
    { [ $at -eq 0 ] || slots b.htw; slots c.htw; } | grep -v '^preexisting' | sed 's/(.*//' >parts
    slots a.htw | sed 's/(.*//' >whole
    cmp parts whole
  done
}

@test "slice: by marks and times, with original stamps or from the start" {
  small_workload
  heaptape slice -o b.htw --from mark:warm --to mark:done a.htw
  [ "$status" -eq 0 ]
  run "$HEAPTAPE" dump b.htw
  has "${lines[0]}" '+0.003500 mark("warm")'
  [ "$(slots b.htw | grep -vc '^preexisting')" -eq 4 ]
  heaptape slice -o c.htw --from 3500us --to 6.5ms a.htw
  [ "$status" -eq 0 ]
  [ "$(slots c.htw)" = "$(slots b.htw)" ]
  heaptape slice -o d.htw --rebase --from 3.5ms --to 6.5ms a.htw
  run "$HEAPTAPE" dump d.htw
  has "${lines[0]}" '+0.000000 mark("warm")'
  [ "$(slots d.htw)" = "$(slots b.htw)" ]
  heaptape slice -o e.htw --from mark:never a.htw
  fails_with 1 "a.htw: contains no mark 'never'"
  heaptape slice -o e.htw --to mark:never a.htw
  fails_with 1 "a.htw: contains no mark 'never' after the start of the part"
  heaptape slice -o e.htw --from mark:warm --to mark:warm a.htw
  fails_with 1 "a.htw: contains no mark 'warm' after the start of the part"
  [ ! -e e.htw ]
}

# samples FILE: the time and RSS of each sample, in one line.
samples() {
  "$HEAPTAPE" export -q -F csv -t samples "$1" | cut -d, -f2,3 | tail -n +2 | tr '\n' ' '
}

@test "slice: samples from the first to the last event of the part" {
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <<'END'
process 100 prog
0 1000 malloc size=24 result=0x100010
sample 1999 4096
sample 2000 8192
0 2000 malloc size=24 result=0x100030
0 3000 malloc size=24 result=0x100050
sample 3000 12288
sample 3001 16384
0 4000 free ptr=0x100010
end
END
  "$HEAPTAPE" convert -q -o a.htw a.ht
  [ "$(samples a.htw)" = "1999,4096 2000,8192 3000,12288 3001,16384 " ]
  "$HEAPTAPE" slice -q --from 1 --to 3 -o b.htw a.htw
  [ "$(samples b.htw)" = "2000,8192 3000,12288 " ]
  "$HEAPTAPE" slice -q --from 1 --to 3 - <a.htw >piped.htw
  cmp b.htw piped.htw
  "$HEAPTAPE" slice -q --rebase --from 1 --to 3 -o rebased.htw a.htw
  [ "$(samples rebased.htw)" = "0,8192 1000,12288 " ]
}

@test "slice: threads" {
  small_workload
  heaptape slice -o b.htw -t 0 a.htw
  [ "$status" -eq 0 ]
  has "$stderr" "1 block freed outside"
  valid b.htw
  run slots b.htw
  [ "$output" = 'malloc(32) = #0
malloc(64) = #1
memalign(align=64, 100) = #2
mark("warm")
preexisting(48) = #3
realloc(#3, 96) = #3
free(#3)
mark("done")
free(#2)' ]
  heaptape slice -o c.htw --threads 1-7 a.htw
  run slots c.htw
  [ "$output" = 'thread.start(parent=none)
malloc(48) = #0
preexisting(32) = #1
free(#1)
thread.end()' ]
}

@test "slice: aligned, sized and C++ blocks are freed as they were allocated" {
  skip_under_sanitizer
  "$HEAPTAPE_PROGRAMS/make_workload" a.htw kinds 4 20000 >/dev/null
  for part in "--from 3000 --to 9000" "--from 12000" "-t 1,3" "-t 0-2 --from 5000 --to 15000"; do
    "$HEAPTAPE" slice -q -f -o b.htw $part a.htw
    valid b.htw
    heaptape replay -q -r 1 -a "$HEAPTAPE_PROGRAMS/libtest-verify.so" b.htw
    expect "$part" [ "$status" -eq 0 ]
  done
}

@test "slice: from and to a pipe, of a trace, without stamps" {
  small_workload
  "$HEAPTAPE" slice -q --from 6 --to 11 a.htw > b.htw
  cat a.htw | "$HEAPTAPE" slice -q --from 6 --to 11 - | cat > c.htw
  cmp b.htw c.htw
  "$HEAPTAPE" slice -q --from 6 --to 11 a.ht > d.htw
  cmp b.htw d.htw
  "$HEAPTAPE" convert -q --no-timestamps -o n.htw a.ht
  "$HEAPTAPE" slice -q --from 6 --to 11 n.htw > e.htw
  [ "$(slots b.htw)" = "$(slots e.htw)" ]
  heaptape slice -o f.htw --from 1us n.htw
  fails_with 1 "n.htw: the workload has no timestamps and cannot be sliced by time"
}

@test "slice: invalid parts" {
  small_workload
  heaptape slice --from x a.htw
  usage_fails "--from: 'x' is not an event number, a time such as 1.5s, or mark:TEXT"
  heaptape slice --from 5 --to 3 a.htw
  usage_fails "--from: '5' is after --to: '3'"
  heaptape slice --from 2s --to 1500ms a.htw
  usage_fails "--from: '2s' is after --to: '1500ms'"
  # There is no event between these points: the part may not contain the next event.
  for part in "--from 5 --to 5" "--to 0" "--from 4100us --to 4900us" "--from 9 --to 4ms"; do
    # shellcheck disable=SC2086
    heaptape slice -o e.htw $part a.htw
    fails_with 1 "a.htw: the part contains no events"
  done
  heaptape slice --to 1.s a.htw
  usage_fails "--to: '1.s' is no"
  heaptape slice --threads 3-1 a.htw
  usage_fails "--threads: '3-1' is not a list"
  heaptape slice --threads '' a.htw
  usage_fails "is not a list"
  head -c -20 a.htw > b.htw
  heaptape slice -o c.htw b.htw
  fails_with 1 "b.htw: " "cut off"
  cat b.htw | { heaptape slice -o c.htw -; fails_with 1 "(stdin): " "cut off"; }
  [ ! -e c.htw ]
}

# totals FILE EXPRESSION, on stat's JSON.
totals() {
  "$HEAPTAPE" stat --json "$1" | python3 -c "import json, sys; d = json.load(sys.stdin); print($2)"
}

@test "slice: has the duration of the part, and blocks live at its end may be freed later" {
  small_workload
  whole=$(totals a.htw "d['duration_ns']")
  [ "$(totals a.htw "d['partial']")" = False ]
  "$HEAPTAPE" slice -q -o b.htw --from mark:warm --to mark:done a.htw
  # From the first event of the part to the last, as in dump.
  [ "$(totals b.htw "d['partial'], d['duration_ns']")" = "True 2500000" ]
  "$HEAPTAPE" slice -q -o c.htw --from mark:warm --rebase a.htw
  [ "$(totals c.htw "d['partial'], d['duration_ns']")" = "True 3500000" ]
  "$HEAPTAPE" slice -q -o d.htw a.htw
  [ "$(totals d.htw "d['partial'], d['duration_ns']")" = "False $whole" ]
  "$HEAPTAPE" slice -q -o e.htw -t 0 a.htw
  [ "$(totals e.htw "d['partial']")" = True ]
  # A part of a part ends where the inner part ends.
  "$HEAPTAPE" slice -q -o f.htw --to 3 b.htw
  [ "$(totals f.htw "d['duration_ns']")" = 1600000 ]
}
