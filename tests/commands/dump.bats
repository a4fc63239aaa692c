load ../helper

make_trace() {
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <<'END'
process 100 prog
0 1000 malloc size=32 result=0x1000
0 1100 thread.create value=1
1 2500 thread.start value=0
1 4000 free ptr=0x1000
0 3000 calloc size=8 count=3 result=0x2000
0 5000 realloc.begin ptr=0x2000
1 5050 malloc size=5 result=0x2000
0 5100 realloc size=96 result=0x3000
0 5200 posix_memalign align=3 size=8 error=22
0 5300 mark text=phase
0 5400 heaptape.waited value=77
process 200 other
0 1500 free
0 2000 realloc size=9 result=0x7f0000001230
0 1234567890 realloc.begin ptr=0x7f0000001230
0 1234567899 realloc ptr=0x7f0000001230 size=99999 error=12
end
END
}

@test "dump: a recorded trace, by stamp, with addresses" {
  make_trace
  heaptape dump a.ht
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  [ "$output" = '[100 100] +0.000001 malloc(32) = 0x1000
[100 100] +0.000001 thread.create(thread=1)
[200 200] +0.000001 free(NULL)
[200 200] +0.000002 realloc(NULL, 9) = 0x7f0000001230
[100 101] +0.000002 thread.start(parent=0)
[100 100] +0.000003 calloc(3, 8) = 0x2000
[100 101] +0.000004 free(0x1000)
[100 101] +0.000005 malloc(5) = 0x2000
[100 100] +0.000005 realloc(0x2000, 96) = 0x3000
[100 100] +0.000005 posix_memalign(align=3, 8) = NULL (EINVAL)
[100 100] +0.000005 mark("phase")
[200 200] +1.234567 realloc(0x7f0000001230, 99999) = NULL (ENOMEM)' ]
}

@test "dump --format json: one object for each line" {
  make_trace
  heaptape dump --format json a.ht
  [ "$status" -eq 0 ]
  [ "${lines[0]}" = '{"kind":"malloc","pid":100,"tid":100,"time_ns":1000,"size":32,"result":"0x1000"}' ]
  [ "${lines[8]}" = '{"kind":"realloc","pid":100,"tid":100,"time_ns":5100,"size":96,"old_ptr":"0x2000","result":"0x3000"}' ]
  [ "${lines[9]}" = '{"kind":"posix_memalign","pid":100,"tid":100,"time_ns":5200,"size":8,"align":3,"result":"0x0","error":22}' ]
  [ "${lines[10]}" = '{"kind":"mark","pid":100,"tid":100,"time_ns":5300,"text":"phase"}' ]
  printf '%s\n' "$output" | python3 -c 'import json,sys; print(len([json.loads(l) for l in sys.stdin]))' | grep -qx 12
}

@test "dump: prints the number of events that stat counts" {
  make_trace
  [ "$("$HEAPTAPE" dump a.ht | wc -l)" -eq "$("$HEAPTAPE" stat --json a.ht | python3 -c 'import json,sys; print(json.load(sys.stdin)["events"])')" ]
}

@test "dump: a workload with slots" {
  make_trace
  heaptape convert -q a.ht
  heaptape dump --format json a.htw
  [ "$status" -eq 0 ]
  [ "${lines[0]}" = '{"kind":"malloc","pid":100,"tid":0,"time_ns":1000,"size":32,"result":0}' ]
  has "$output" '{"kind":"realloc","pid":100,"tid":0,"time_ns":5100,"size":96,"old_ptr":1,"result":1}'
  has "$output" '{"kind":"thread.start","pid":100,"tid":1,"time_ns":2500,"parent":0,"depends_on":[[0,1]]}'
  has "$output" '"size":8,"align":3,"result":null,"error":22}'
}

@test "dump: one process, some kinds" {
  make_trace
  heaptape dump --pid 200 --kind realloc a.ht
  [ "$status" -eq 0 ]
  [ "${#lines[@]}" -eq 2 ]
  heaptape dump -k free -k mark a.ht
  [ "${#lines[@]}" -eq 3 ]
  # heaptape's own records are not events and are printed only with -k.
  heaptape dump -k heaptape.waited a.ht
  [ "$output" = "[100 100] +0.000005 heaptape.waited(backpressure_ns=77)" ]
  heaptape dump -k mallok a.ht
  usage_fails "unknown kind of event 'mallok'"
}

@test "dump, export, top: a process that the file does not contain" {
  make_trace
  "$HEAPTAPE" convert -q --pid 100 -o a.htw a.ht
  local words
  for words in "dump --pid 3" "export -F json --pid 3" "export -F wl --pid 3"; do
    # shellcheck disable=SC2086 # several words
    heaptape $words a.ht
    fails_with 1 "a.ht: the trace contains no events of process 3; it contains processes 100, "
    # shellcheck disable=SC2086
    heaptape $words a.htw
    fails_with 1 "a.htw: is a workload of process 100, not 3"
  done
  heaptape top -n 1 --pid 3 a.ht
  fails_with 1 "a.ht: contains no events of process 3"
  heaptape dump --pid 100 a.htw
  [ "$status" -eq 0 ]
}

@test "dump: a truncated file is dumped up to its end" {
  make_trace
  heaptape convert -q a.ht
  head -c -10 a.ht > b.ht
  heaptape dump b.ht
  [ "$status" -eq 0 ]
  [ "${#lines[@]}" -eq 12 ]
  has "$stderr" "b.ht: cut off"
  head -c -5 a.htw > b.htw
  heaptape dump b.htw
  fails_with 1 "b.htw: cut off"
  [ "${#lines[@]}" -eq 9 ]
}

@test "dump: a reader that closes the pipe" {
  make_trace
  "$HEAPTAPE" dump a.ht | head -1 | grep -q malloc
}

@test "dump: notes are printed with their events, and the converter ignores them" {
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <<'TRACE'
process 100 prog
0 1000 malloc size=32 result=0x1000 usable=40
1 1500 calloc size=8 count=3 result=0x2000
1 1600 mark text=between
1 60000 calloc size=8 count=3 result=0x3000 usable=576460752303423487
round
0 70000 free ptr=0x1000 usable=40
0 71000 free ptr=0x3000
end
TRACE
  heaptape dump a.ht
  [ "$output" = '[100 100] +0.000001 malloc(32) = 0x1000 usable=40
[100 101] +0.000001 calloc(3, 8) = 0x2000
[100 101] +0.000001 mark("between")
[100 101] +0.000060 calloc(3, 8) = 0x3000 usable=576460752303423487
[100 100] +0.000070 free(0x1000) usable=40
[100 100] +0.000071 free(0x3000)' ]
  heaptape dump --format json --kind free a.ht
  [ "${lines[0]}" = '{"kind":"free","pid":100,"tid":100,"time_ns":70000,"ptr":"0x1000","usable":40}' ]
  heaptape convert --strict -o a.htw a.ht
  [ "$status" -eq 0 ]
  [ "$("$HEAPTAPE" dump a.htw | wc -l)" -eq 6 ]
}

@test "dump: arguments have the names and signs of their kinds" {
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <<'TRACE'
process 100 prog
0 1000 mallopt count=0xffffffffffffffff value=131072
0 2000 mallopt count=5 value=0xfffffffffffffffd
0 3000 sbrk value=0xfffffffffffff000 result=0x20000
0 4000 mremap ptr=0x10000 size=4096 count=8192 result=0x40000
0 5000 malloc_trim value=64
end
TRACE
  heaptape dump a.ht
  [ "$output" = '[100 100] +0.000001 mallopt(param=-1, value=131072)
[100 100] +0.000002 mallopt(param=5, value=-3)
[100 100] +0.000003 sbrk(increment=-4096) = 0x20000
[100 100] +0.000004 mremap(0x10000, new_size=8192, old_size=4096) = 0x40000
[100 100] +0.000005 malloc_trim(pad=64)' ]
  heaptape dump --format json a.ht
  [ "${lines[0]}" = '{"kind":"mallopt","pid":100,"tid":100,"time_ns":1000,"param":-1,"value":131072}' ]
  [ "${lines[2]}" = '{"kind":"sbrk","pid":100,"tid":100,"time_ns":3000,"increment":-4096,"result":"0x20000"}' ]
  [ "${lines[3]}" = '{"kind":"mremap","pid":100,"tid":100,"time_ns":4000,"old_size":4096,"new_size":8192,"ptr":"0x10000","result":"0x40000"}' ]
  # Importing the lines gives the same values.
  "$HEAPTAPE" dump --format json a.ht | grep -v mremap >a.json
  "$HEAPTAPE" import -q --trace -F json -o b.ht a.json
  diff <("$HEAPTAPE" dump --format json b.ht | sed "s/\"time_ns\":[0-9]*//") <(sed "s/\"time_ns\":[0-9]*//" a.json)
}
