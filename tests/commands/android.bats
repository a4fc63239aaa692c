load ../helper

plain() {
  cat >trace <<'TRACE'
186: malloc 0xb6027400 1024
186: calloc 0xb6003090 4 8
187: realloc 0xb6001000 0x0 12
187: realloc 0xb6002000 0xb6001000 24
186: memalign 0xb6004000 64 100
187: free 0xb6027400
186: free 0x0
187: thread_done 0x0
TRACE
}

timed() {
  plain
  awk '{ print $0, NR * 100, NR * 100 + 50 }' trace >timed
}

@test "android: without times" {
  plain
  heaptape import -F android trace
  expect "status 0" [ "$status" -eq 0 ]
  has "$stderr" "8 events, 2 threads"
  "$HEAPTAPE" stat --json trace.htw >stat
  has "$(cat stat)" '"remote_frees": 1'
  has "$(cat stat)" '"duration_ns": 0'
  "$HEAPTAPE" import -q --trace -F android trace
  "$HEAPTAPE" export -q -F android --no-timestamps -o again trace.ht
  cmp trace again
}

@test "android: with times" {
  timed
  heaptape import -F android timed
  expect "status 0" [ "$status" -eq 0 ]
  "$HEAPTAPE" stat --json timed.htw >stat
  has "$(cat stat)" '"duration_ns": 700'
  heaptape export -F android timed.htw
  has "${lines[1]}" "1: calloc 0x20 4 8 100 100"
  has "${lines[7]}" "2: thread_done 0x0 700 700"
  heaptape export --no-timestamps -F android timed.htw
  [ "${lines[1]}" = "1: calloc 0x20 4 8" ]
}

@test "android: survives import, export, import" {
  timed
  for file in trace timed; do
    "$HEAPTAPE" import -q -F android -o a.htw $file
    "$HEAPTAPE" export -q -F android -o again a.htw
    "$HEAPTAPE" import -q -F android -o b.htw again
    diff <("$HEAPTAPE" dump a.htw) <("$HEAPTAPE" dump b.htw)
    rm a.htw b.htw again
  done
}

@test "android: events that memory_replay lacks are written as the nearest ones" {
  cat >a.json <<'JSON'
{"kind":"posix_memalign","pid":5,"tid":5,"size":8,"align":64,"result":"0x1000"}
{"kind":"valloc","pid":5,"tid":5,"size":10,"result":"0x2000"}
{"kind":"new","pid":5,"tid":5,"size":11,"result":"0x3000"}
{"kind":"delete(size)","pid":5,"tid":5,"size":11,"ptr":"0x3000"}
{"kind":"mark","pid":5,"tid":5,"text":"here"}
JSON
  "$HEAPTAPE" import -q -F json a.json
  heaptape export -F android a.json.htw
  expect "lines" [ "$output" = '1: memalign 0x10 64 8
1: memalign 0x20 4096 10
1: malloc 0x30 11
1: free 0x30' ]
  has "$stderr" "android cannot store posix_memalign (1), valloc (1): written as memalign"
  has "$stderr" "android cannot store mark (1): dropped"
}

@test "android: errors name the line" {
  try() {
    printf '7: malloc 0x10 1\n%b\n7: free 0x10\n' "$1" >trace
    heaptape import -F android -o out.htw trace
    fails_with 1 "trace: expected $2" "in line 2"
    [ ! -e out.htw ]
    heaptape import -k -F android -o out.htw trace
    expect "status 0" [ "$status" -eq 0 ]
    has "$stderr" "skipped 1 invalid record"
    has "$stderr" "2 events"
    rm out.htw
  }
  try '7: mallok 0x10 1' "malloc, calloc, realloc, memalign, free or thread_done, not 'mallok'"
  try '7: malloc 0x10' "a space and another value, not the end of the line"
  try '7: malloc 0x10 -1' "a size, not '-1'"
  try '7: malloc 0x10 99999999999999999999' "a size"
  try '7: free 0x10 100' "a space and the time of the end"
  try '7: free 0x10 100 120' "no times, as in the previous lines"
  try '7 free 0x10' "': ', not a space"
  try '7: fr\0ee' "text, found a NUL byte"
  printf '7: malloc 0x10 1\n7: malloc 0x20 10' >trace
  heaptape import -F android -o out.htw trace
  fails_with 1 "expected a newline at its end: the file is cut off" "in line 2"
}

# counts FILE: calls by kind, from stat.
counts() {
  "$HEAPTAPE" stat --json "$1" | jq -c '[.by_kind.malloc, .by_kind.calloc, .by_kind.realloc, .by_kind.free, .by_kind["thread.end"]]'
}

@test "android: the beginning of a phone's compositor" {
  zcat "$HEAPTAPE_SOURCE/tests/foreign/surfaceflinger-54000.txt.gz" >trace
  heaptape import -F android -o a.htw trace
  has "$stderr" "54 000 events, 11 threads"
  expect "calls" [ "$(counts a.htw)" = "[24119,2408,1598,25874,1]" ]
  expect "all matched" [ "$("$HEAPTAPE" stat --json a.htw | jq -c '[.unmatched_frees, .order.repaired, .order.ambiguous]')" = "[0,0,0]" ]
  "$HEAPTAPE" import -q --trace -F android -o a.ht trace
  "$HEAPTAPE" export -q -F android a.ht | cmp - trace
  for format in android logalloc logalloc-munged; do
    "$HEAPTAPE" export -q -F $format -o b a.htw
    "$HEAPTAPE" import -q -F $format -o b.htw b
    "$HEAPTAPE" export -q -F $format b.htw | cmp - b
    rm b b.htw
  done
  "$HEAPTAPE" replay -q --runs 1 -a glibc --verify a.htw
}

@test "android: the whole log of a phone's compositor" {
  zip=$HEAPTAPE_DATA/android/surfaceflinger.zip
  [ -e "$zip" ] || skip "HEAPTAPE_DATA names no folder with android/surfaceflinger.zip"
  unzip -p "$zip" | "$HEAPTAPE" import -q -F android -o a.htw -
  expect "calls" [ "$(counts a.htw)" = "[1142990,44229,73781,1194239,1]" ]
  expect "threads" [ "$("$HEAPTAPE" stat --json a.htw | jq -c '[.events, .threads, .unmatched_frees]')" = "[2455240,15,0]" ]
  "$HEAPTAPE" export -q -F android -o again a.htw
  "$HEAPTAPE" import -q -F android -o b.htw again
  "$HEAPTAPE" export -q -F android b.htw | cmp - again
  for allocator in glibc jemalloc tcmalloc mimalloc; do
    "$HEAPTAPE" replay -q --runs 1 -a $allocator a.htw
  done
}

@test "android: failed calls and frees of unknown blocks are skipped and counted" {
  cat >a.json <<'JSON'
{"kind":"malloc","pid":5,"tid":5,"size":9,"result":"0x1000"}
{"kind":"malloc","pid":5,"tid":5,"size":99,"error":12,"result":null}
{"kind":"realloc","pid":5,"tid":5,"old_ptr":"0x1000","size":999,"error":12,"result":null}
{"kind":"free","pid":5,"tid":5,"ptr":"0x2000"}
{"kind":"realloc","pid":5,"tid":5,"old_ptr":"0x3000","size":7,"result":"0x4000"}
{"kind":"free","pid":5,"tid":5,"ptr":"0x4000"}
JSON
  "$HEAPTAPE" import -q --trace -F json -o a.ht a.json
  heaptape export -F android a.ht
  expect "lines" [ "$output" = '5: malloc 0x1000 9
5: realloc 0x4000 0x0 7
5: free 0x4000' ]
  has "$stderr" "android cannot store failed calls: 2 dropped"
  has "$stderr" "android cannot store frees of blocks from before the recording: 1 dropped"
  has "$stderr" "android cannot store reallocs of blocks from before the recording: 1 written without the old block"
}

@test "android: blanks at the ends of lines" {
  plain
  sed 's/$/ \t /' trace >blanks
  "$HEAPTAPE" import -q -F android -o a.htw trace
  "$HEAPTAPE" import -q -F android -o b.htw blanks
  cmp <("$HEAPTAPE" dump a.htw) <("$HEAPTAPE" dump b.htw)
}
