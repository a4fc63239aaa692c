load ../helper

# Real files of glibc's dj/malloc branch and of gperftools, also read by a second reader,
# tests/foreign.py.
foreign() {
  python3 "$HEAPTAPE_SOURCE/tests/foreign.py" "$@"
}

files="$HEAPTAPE_SOURCE/tests/foreign"

checks=() # arguments of foreign, separated by "+"

# numbers FILE.htw: the JSON of stat without spaces.
numbers() {
  "$HEAPTAPE" stat --json "$1" | tr -d ' \n'
}

# import FORMAT FILE NAME: writes NAME.htw and its dump NAME.json.
import() {
  "$HEAPTAPE" import -q -f -F "$1" -o "$3.htw" "$2" && "$HEAPTAPE" dump --format json "$3.htw" >"$3.json"
}

@test "mtrace: every call of the real files is imported" {
  for name in api mt2 synth2x; do
    import mtrace "$files/$name.mtrace" "$name"
    checks+=(calls mtrace "$files/$name.mtrace" "$name.json" +)
  done
  foreign "${checks[@]}"
  has "$(numbers synth2x.htw)" '"events":1500,"by_kind":{"malloc":1430,"free":26,"calloc":36,"memalign":8}'
}

@test "mtrace: failed calls, realloc to 0, and their meaning" {
  import mtrace "$files/api.mtrace" a
  heaptape dump a.htw
  has "$output" "posix_memalign(align=3, 10) = NULL (EINVAL)"
  has "$output" "malloc(18446744073709551516) = NULL (ENOMEM)"
  has "$output" "realloc(#11, 0) = NULL"
  has "$output" "free(NULL)"
}

@test "mtrace: records of 32 bytes, holes, and trailing zeros of a killed program" {
  python3 - "$files/mt2.mtrace" <<'PY'
import sys
data = open(sys.argv[1], "rb").read()
records = [data[i:i + 64] for i in range(0, len(data), 64)]
open("old.mtrace", "wb").write(b"".join(r[:32] for r in records) + bytes(3200))
open("tail.mtrace", "wb").write(data + bytes(64 * 100))
PY
  import mtrace "$files/mt2.mtrace" a
  import mtrace old.mtrace old
  foreign calls mtrace32 old.mtrace old.json
  cmp a.json old.json
  import mtrace tail.mtrace tail
  cmp a.json tail.json
}

@test "mtrace: survives export" {
  for name in api mt2 synth2x; do
    import mtrace "$files/$name.mtrace" a
    heaptape export -F mtrace -f -o b.mtrace a.htw
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    import mtrace b.mtrace b
    cmp a.json b.json
  done
}

@test "mtrace: the paths of malloc are kept in a trace, printed, and written again" {
  "$HEAPTAPE" import -q --trace -F mtrace -o a.ht "$files/api.mtrace"
  heaptape dump a.ht
  has "$output" "malloc(77) = 0x7f1f180008c0 path=cpu_cache|unsorted_empty usable=88"
  has "$output" "malloc(300000) = 0x7f1f24aaa010 path=cpu_cache|mmap|unsorted_remove|unsorted_empty usable=303088"
  heaptape import -F mtrace -o a.htw "$files/api.mtrace"
  has "$stderr" "paths of malloc: thread_cache 1, cpu_cache 9, cpu_cache_2 1, mmap 1, munmap 1, hook 1,"
  "$HEAPTAPE" export -q -F mtrace -o b.mtrace a.ht
  # Equal except for the thread numbers.
  python3 - "$files/api.mtrace" b.mtrace <<'PY'
import sys
a, b = (open(f, "rb").read() for f in sys.argv[1:])
assert len(a) == len(b)
for i in range(64, len(a), 64):
    assert a[i + 4:i + 64] == b[i + 4:i + 64], (i, a[i:i + 64].hex(), b[i:i + 64].hex())
PY
  # JSON keeps it, too.
  "$HEAPTAPE" export -q -F json -o a.json a.ht
  "$HEAPTAPE" import -q --trace -F json -o c.ht a.json
  "$HEAPTAPE" dump a.ht | cut -d' ' -f4- >a.txt
  "$HEAPTAPE" dump c.ht | cut -d' ' -f4- | cmp a.txt -
}

@test "wl: every call of the stock converter's files is imported" {
  for name in api mt2 synth2x; do
    import wl "$files/$name.wl" "$name"
    checks+=(calls wl "$files/$name.wl" "$name.json" +)
  done
  foreign "${checks[@]}"
}

@test "wl: the stock converter and heaptape convert a trace equally" {
  for name in mt2 synth2x; do
    import mtrace "$files/$name.mtrace" "$name-a"
    import wl "$files/$name.wl" "$name-b"
    checks+=(same "$name-a.json" "$name-b.json" + live "$name-a.json" "$name-b.json" +)
  done
  foreign "${checks[@]}"
}

@test "wl: trace_run can play exported files" {
  for name in api mt2 synth2x; do
    import mtrace "$files/$name.mtrace" "$name-a"
    heaptape export -F wl -o "$name.wl" "$name-a.htw"
    [ "$status" -eq 0 ]
    checks+=(wl "$name.wl" +)
    # Calls that only api.mtrace has are written as other calls.
    [ "$name" != api ] || continue
    import wl "$name.wl" "$name-b"
    checks+=(same "$name-a.json" "$name-b.json" + live "$name-a.json" "$name-b.json" +)
  done
  import tcmalloc "$files/three.lz4" a
  heaptape export -F wl -f -o b.wl a.htw
  has "$stderr" "wl cannot store timestamps: dropped"
  has "$stderr" "wl cannot store thread.end (3): dropped"
  foreign "${checks[@]}" wl b.wl
}

@test "wl: calls without an op are written as the nearest ops, with a note" {
  import mtrace "$files/api.mtrace" a
  heaptape export -F wl -o b.wl a.htw
  [ "${#stderr_lines[@]}" -eq 2 ]
  has "$stderr" "wl cannot store posix_memalign (3), valloc (1), pvalloc (1): written as memalign"
  has "$stderr" "wl cannot store reallocs that free: 1 written as free"
  import wl b.wl b
  heaptape dump b.htw
  has "$output" "memalign(align=4096, 4096)"
}

@test "wl: from a pipe and to a pipe" {
  "$HEAPTAPE" import -q -F wl - <"$files/synth2x.wl" | "$HEAPTAPE" export -F wl - | cat >b.wl
  cat "$files/synth2x.wl" | "$HEAPTAPE" import -q -F wl -o a.htw -
  import wl b.wl b
  "$HEAPTAPE" dump --format json a.htw >a.json
  foreign same a.json b.json
}

@test "wl: threads in a deadlock are an error" {
  # The first stream reads sync 1 and writes sync 2. The second stream reads sync 2 and writes sync
  # 1.
  printf '\x08\x02\x09\x03\x0a\x02\x0b\x0b\x0b\x13\x01\x07\x01\x02\x01\x08\x06\x02\x01\x07\x02\x06\x01\x01' >dead.wl
  heaptape import -F wl -o out.htw dead.wl
  fails_with 1 "dead.wl: deadlock: a thread waits for sync 1, which is never posted, at byte 13"
  heaptape import -k -F wl -o out.htw dead.wl
  [ "$status" -eq 0 ]
  has "$stderr" "invalid record"
}

@test "wl: a file without threads, as the export of a workload without calls, holds no events" {
  printf '\x08\x01\x09\x01\x0a\x00\x01' >none.wl
  heaptape import -F wl -o none.htw none.wl
  fails_with 1 "none.wl: contains no events in wl format"
  # An extra stream is an error of the header.
  printf '\x08\x01\x09\x01\x0a\x02\x0b\x09\x01\x01' >bad.wl
  heaptape import -F wl -o bad.htw bad.wl
  fails_with 1 "bad.wl: expected the streams of 2 threads, found 1"
}

@test "wl: a stream must not run into the next one" {
  printf '\x08\x02\x09\x01\x0a\x02\x0b\x0b\x0b\x0b\x01\x02\x01\x08\x01' >twice.wl
  heaptape import -F wl -o out.htw twice.wl
  fails_with 1 "cut off inside the stream of a thread"
}

@test "tcmalloc: every call of the real file is imported" {
  heaptape import -F tcmalloc -o a.htw "$files/three.lz4"
  has "$stderr" "34 088 events, 4 threads"
  "$HEAPTAPE" dump --format json a.htw >a.json
  lz4 -dc "$files/three.lz4" >plain
  foreign calls tcmalloc plain a.json
  for text in '"malloc":15652,"free":16070,"realloc":1932,"memalign":431,"thread.end":3' '"live_at_end_blocks":13' \
    '"unmatched_frees":0'; do
    has "$(numbers a.htw)" "$text"
  done
  import tcmalloc plain b
  cmp a.json b.json
}

@test "tcmalloc: exported files are read back, also by a second reader" {
  import tcmalloc "$files/three.lz4" a
  heaptape export -F tcmalloc -o b.raw a.htw
  expect "nothing lost" [ -z "$stderr" ]
  import tcmalloc b.raw b
  foreign calls tcmalloc b.raw b.json + same a.json b.json
  has "$(numbers b.htw)" '"malloc":15652,"free":16070,"realloc":1932,"memalign":431,"thread.end":3'
  lz4 -q b.raw b.lz4
  import tcmalloc b.lz4 c
  cmp b.json c.json
}

@test "tcmalloc: calls without an item are written as the nearest items, with a note" {
  import mtrace "$files/api.mtrace" a
  heaptape export -F tcmalloc -o b.raw a.htw
  for text in "calloc (2): written as malloc" "failed calls: 2 dropped" "frees of NULL: 1 dropped" \
    "reallocs that free: 1 written as free"; do
    has "$stderr" "tcmalloc cannot store $text"
  done
  import tcmalloc b.raw b
  foreign calls tcmalloc b.raw b.json
  has "$(numbers b.htw)" '"unmatched_frees":0'
}

@test "tcmalloc-replay: every call of the stock file is imported, and survives export" {
  gzip -dc "$files/three.ins.gz" >three.ins
  import tcmalloc-replay three.ins a
  heaptape export -F tcmalloc-replay -o b.ins a.htw
  [ -z "$stderr" ]
  import tcmalloc-replay b.ins b
  foreign calls tcmalloc-replay three.ins a.json + replay b.ins + same a.json b.json
  lz4 -q b.ins b.lz4
  import tcmalloc-replay b.lz4 c
  cmp b.json c.json
}

@test "tcmalloc-replay: the stock player can play exported files" {
  import mtrace "$files/api.mtrace" a
  heaptape export -F tcmalloc-replay -o b.ins a.htw
  foreign replay b.ins
  for text in "calloc (2): written as malloc" "failed calls: 2 dropped" "frees of NULL: 1 dropped" \
    "reallocs that free: 1 written as free"; do
    has "$stderr" "tcmalloc-replay cannot store $text"
  done
}

@test "an imported file replays" {
  import tcmalloc "$files/three.lz4" a
  heaptape replay -a glibc --runs 1 --json a.htw
  [ "$status" -eq 0 ]
  has "$output" '"events":34085'
}

@test "import --trace keeps threads and addresses" {
  "$HEAPTAPE" import -q --trace -F mtrace -o a.ht "$files/api.mtrace"
  heaptape dump a.ht
  has "$output" "[1 27389]"
  has "$output" "malloc(77) = 0x7f1f180008c0"
  "$HEAPTAPE" convert -q -o b.htw a.ht
  import mtrace "$files/api.mtrace" a
  "$HEAPTAPE" dump --format json b.htw | sed 's/"time_ns":[0-9]*,//' | cmp - a.json
}

@test "bad files are refused with the offset and the expectation" {
  refuses() {
    heaptape import -F "$1" -o out.htw bad
    fails_with 1 "bad: " "$2" "at byte"
    [ ! -e out.htw ]
  }
  head -c 500 "$files/api.mtrace" >bad
  refuses mtrace "cut off inside a record that begins at byte 448"
  { head -c 128 "$files/api.mtrace" && head -c 64 /dev/zero | tr '\0' '\11'; } >bad
  refuses mtrace "expected a record of type 0 to 8 or 255, found 9 at byte 128"
  # The bytes are not random, because a random file could begin with 0, which is a valid end of a wl
  # header.
  head -c 4000 /dev/zero | tr '\0' '\377' >bad
  refuses mtrace "expected the MAGIC record"
  printf '= Start\n@ ./a.out:[0x401136] + 0x4052a0 0x10\n= End\n' >bad
  refuses mtrace "(not the text of mtrace(3))"
  printf '= Start\n' >bad
  refuses mtrace "(not the text of mtrace(3))"
  refuses wl "expected the header of a wl file"
  refuses tcmalloc "expected the magic number of a gperftools trace"
  printf '\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\11' >bad
  refuses tcmalloc-replay "cut off inside an instruction"
  head -c 3000 "$files/synth2x.wl" >bad
  refuses wl "expected the offset of a thread's stream inside the file"
  head -c 6000 "$files/synth2x.wl" >bad
  refuses wl "cut off inside the stream of a thread"
  lz4 -dc "$files/three.lz4" | head -c 50000 >bad
  refuses tcmalloc "cut off inside a buffer's event"
  head -c 50000 "$files/three.lz4" >bad
  refuses tcmalloc "the LZ4 frame is cut off"
  python3 -c 'import sys; d = open(sys.argv[1], "rb").read(); i = d.index(b"\x08", 24); open("bad", "wb").write(d[:24] + b"\4\0\0\0" + d[28:])' \
    "$files/api.mtrace"
  refuses mtrace "expected a trace of a 64-bit program"
}

@test "--keep-going: the rest of a bad file is imported" {
  head -c 500 "$files/api.mtrace" >bad
  heaptape import -k -F mtrace -o out.htw bad
  [ "$status" -eq 0 ]
  has "$stderr" "skipped 1 invalid record, the first: bad: cut off inside a record"
  has "$stderr" "6 events"
  lz4 -dc "$files/three.lz4" | head -c 50000 >bad
  heaptape import -k -f -F tcmalloc -o out.htw bad
  [ "$status" -eq 0 ]
  has "$stderr" "skipped 1 invalid record, the first: bad: cut off inside a buffer"
}

@test "tcmalloc: --keep-going imports the complete part of a killed capture" {
  head -c 60000 "$files/three.lz4" >killed.lz4
  heaptape import -F tcmalloc -o a.htw killed.lz4
  fails_with 1 "killed.lz4: the LZ4 frame is cut off at byte 60000"
  heaptape import -k -F tcmalloc -o a.htw killed.lz4
  expect "status 0" [ "$status" -eq 0 ]
  has "$stderr" "skipped"
  lz4 -dc "$files/three.lz4" >plain
  head -c 60000 plain >killed
  heaptape import -k -F tcmalloc -o b.htw killed
  expect "status 0" [ "$status" -eq 0 ]
  for file in a b; do
    [ "$("$HEAPTAPE" stat --json $file.htw | jq .events)" -gt 1000 ]
  done
}

@test "tcmalloc: a failed huge malloc does not change the sizes after it" {
  python3 - >huge <<'PYTHON'
import struct, sys

def number(v):
    v &= 2**64 - 1
    for n in range(1, 9):
        if v < 1 << 7 * n:
            return (v << n | 1 << n - 1).to_bytes(n, "little")
    return b"\0" + struct.pack("<Q", v)

def change(d, bits, kind):
    return number(((d << 1) ^ (d >> 63)) << bits | kind)

huge = (2**64 - 64) // 8
events = number(0 << 3 | 2) + number(1 << 10)
before = 0
for size in [1, huge, 3]:
    events += change(size - before, 3, 0)
    before = size
events += change(huge - 3, 8, 0x17) + change(2, 0, 0) + change(5 - huge, 3, 0)
items = number(1 << 3 | 3) + number(2 << 10) + number(len(events)) + events + number(0x0f)
sys.stdout.buffer.write(struct.pack("<I", 0x6cbd63e4) + items)
PYTHON
  heaptape import -F tcmalloc -o a.htw huge
  expect "status 0" [ "$status" -eq 0 ]
  "$HEAPTAPE" dump --format json a.htw | jq -c '[.size, .error]' >sizes
  cat sizes
  [ "$(jq -c 'select(.[1] == null) | .[0]' sizes | tr '\n' ' ')" = "8 24 40 " ]
  [ "$(jq -c 'select(.[1] != null) | .[0]' sizes | wc -l)" -eq 2 ]
}
