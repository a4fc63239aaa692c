load ../helper

# small.heaptrack.zst and small.heaptrack.raw.zst were written by Debian's heaptrack 1.4.0 for
# tests/foreign/small.cc.
files="$HEAPTAPE_SOURCE/tests/foreign"

# import FILE [OPTION...]: writes x.htw, and the figures of its call sites to sites.json.
import() {
  heaptape import -q -f -F heaptrack -o x.htw "$@"
  expect "imported" [ "$status" -eq 0 ]
  "$HEAPTAPE" check -q x.htw
  "$HEAPTAPE" stat --json x.htw >stat.json
  "$HEAPTAPE" stat --by site --top 0 --json x.htw >sites.json
}

# is_small: checks the calls of small.cc, counted by hand.
is_small() {
  python3 - <<'END'
import json
stat, sites = json.load(open('stat.json')), json.load(open('sites.json'))['sites']
# The program allocates 100 blocks that leak, 11 blocks for a vector of 1,000 elements, a block that
# is resized 49 times, and one block of libstdc++.
grows, resizes = [4 << i for i in range(9)] + [2048, 4096], [10] + [i * 1000 for i in range(1, 50)]
assert stat['by_kind'] == {'malloc': 162, 'free': 62}, stat['by_kind']
assert stat['unmatched_frees'] == 0
assert stat['requested_bytes'] == 100 * 100 + sum(grows) + sum(resizes) + 72704, stat['requested_bytes']
assert stat['live_at_end_bytes'] == 100 * 100
assert len(sites) == 5
assert sorted(s['allocs'] for s in sites) == [1, 1, 11, 49, 100]
leak = [s for s in sites if s['live_at_end_bytes']]
assert len(leak) == 1 and leak[0]['live_at_end_blocks'] == 100
END
}

@test "heaptrack: a data file, with names of functions, including inlined ones" {
  import "$files/small.heaptrack.zst"
  is_small
  python3 - <<'END'
import json
sites = json.load(open('sites.json'))['sites']
leak = next(s for s in sites if s['live_at_end_bytes'])
frames = [(f['function'], f.get('file', '').split('/')[-1], f.get('line')) for f in leak['frames']]
assert frames[:3] == [('leak', 'small.cc', 9), ('leaks', 'small.cc', 15), ('main', 'small.cc', 35)], frames
END
  [ "$(jq -r '.processes[0].argv | join(" ")' stat.json)" = "./small" ]
  heaptape replay -q --runs 1 x.htw
  [ "$status" -eq 0 ]
}

@test "heaptrack: a raw file has addresses, which identify the freed block" {
  import "$files/small.heaptrack.raw.zst"
  is_small
  zstd -qdc "$files/small.heaptrack.raw.zst" | heaptape import -q -f -F heaptrack --trace -o x.ht -
  # Addresses allocated and freed, in order.
  "$HEAPTAPE" dump x.ht | sed -n 's|.* malloc([0-9]*).* = 0x\([0-9a-f]*\).*|+ \1|p; s|.* free(0x\([0-9a-f]*\)).*|- \1|p' >here
  zstd -qdc "$files/small.heaptrack.raw.zst" | awk '$1 == "+" { print "+", $4 } $1 == "-" { print "-", $2 }' >there
  [ "$(wc -l <there)" -eq 224 ]
  diff there here
}

@test "heaptrack: files of the formats 0, 1 and 2" {
  local version
  zstd -qdc "$files/small.heaptrack.zst" >3
  import 3
  cp sites.json first.json
  # Before format 3, strings have no length. Before format 1, allocations are not numbered, and
  # blocks have addresses.
  python3 - <<'END'
lines = open('3', encoding='utf-8').read().splitlines()
plain = ['s ' + l.split(' ', 2)[2] if l.startswith('s ') else l for l in lines[1:]]
for version in 1, 2:
    open(str(version), 'w').write('\n'.join([f'v 10300 {version}'] + plain) + '\n')
infos, live, out, at = [], {}, ['v 10100'], 0x1000
for l in plain:
    letter, *rest = l.split(' ', 1)
    if letter == 'a':
        infos.append(rest[0])
    elif letter == '+':
        at += 16
        live.setdefault(rest[0], []).append(at)
        out.append(f'+ {infos[int(rest[0], 16)]} {at:x}')
    elif letter == '-':
        out.append(f'- {live[rest[0]].pop():x}')
    else:
        out.append(l)
open('0', 'w').write('\n'.join(out) + '\n')
END
  for version in 0 1 2; do
    import $version
    is_small
    diff <(jq .sites first.json) <(jq .sites sites.json)
  done
  sed 's/^v .*/v 10500 4/' 3 >4
  heaptape import -F heaptrack -o y.htw 4
  fails_with 1 "4: expected the version of the format, at most 3" "line 1"
}

@test "heaptrack: frees of blocks from before heaptrack was attached" {
  printf 'v 10400 3\nX a\nA\nt 0 0\n' >bad
  heaptape import -F heaptrack -o y.htw bad
  fails_with 1 "bad: expected the number of a frame" "line 4"
  printf 'v 10400 3\nX a\nA\ns 2 /a\ni 1000 1\nt 1 0\na 10 1\n+ 0\n- 0\n- 0\nc a\n+ 0\n' >attached
  heaptape import -q -F heaptrack -o y.htw attached
  [ "$status" -eq 0 ]
  "$HEAPTAPE" stat --json y.htw >stat.json
  [ "$(jq -c '[.by_kind.malloc, .by_kind.free, .unmatched_frees, .live_at_end_bytes, .duration_ns > 9990000]' stat.json)" = "[2,2,1,16,true]" ]
}

@test "heaptrack: bad files are refused with the line and the expectation" {
  local line text
  while IFS='|' read -r line text; do
    printf 'v 10400 3\nX a\ns 2 /a\ni 1000 1\nt 1 0\na 10 1\n%b\n' "$line" >bad
    heaptape import -F heaptrack -f -o y.htw bad
    fails_with 1 "bad: expected $text" "line 7"
    [ ! -e y.htw ]
  done <<'END'
+ 1|the number of an allocation
- 7|the number of an allocation
+|the number of an allocation
a 10 2|a size and the number of a call site
t 2 0|the number of a frame
t 1 9|a frame and the number of a call site
i 2000 7|an address and the number of a module
i 2000 1 9 9 9|the number of a function
i 2000 1 1 9 9|the number of a file, and a line
s 99 short|a text of the given length
s|the length of a text
c x|a time in ms
m 1 x|the address of a module
m 1 x 1000 0|the address and size of a segment
X |a command line
X \t |a command line
s |the length of a text
+ |the number of an allocation
?|a line of heaptrack
END
  printf 'v 10400 3\nX a\ns 2 /a\ni 1000 1\nt 1 0\na 10 1\n+ 0\nwhat\n+ 0\n' >bad
  heaptape import -k -F heaptrack -f -o y.htw bad
  [ "$status" -eq 0 ]
  has "$stderr" "skipped 1 invalid record"
  [ "$("$HEAPTAPE" stat --json y.htw | jq .by_kind.malloc)" -eq 2 ]
  head -c 900 "$files/small.heaptrack.zst" >cut.zst
  heaptape import -F heaptrack -f -o y.htw cut.zst
  fails_with 1 "cut.zst: the zstd frame is cut off at byte 900"
  { head -c 300 "$files/small.heaptrack.zst"; head -c 900 /dev/zero; } >damaged.zst
  heaptape import -F heaptrack -f -o y.htw damaged.zst
  fails_with 1 "damaged.zst: " "zstd frame"
}

@test "heaptrack: a new recording has the calls, bytes and leaks of heaptrack_print" {
  skip_under_sanitizer
  command -v heaptrack >/dev/null && command -v heaptrack_print >/dev/null || skip "heaptrack is not installed"
  g++ -O1 -g -fno-builtin-malloc -o small "$files/small.cc"
  heaptrack -o now ./small >/dev/null 2>&1
  import now.*
  is_small
  heaptrack_print -f now.* 2>/dev/null | grep -q "^calls to allocation functions: $(jq .by_kind.malloc stat.json) "
}

# ops LINE...: encodes opcode, thread, alignment, slot and size of each record.
ops() {
  printf '%s\n' "$@" | python3 -c 'import struct, sys
for l in sys.stdin:
    sys.stdout.buffer.write(struct.pack("<IHHQQ", *map(int, l.split())))'
}

@test "mallocbench: every record is a call" {
  ops "0 0 0 0 100" "0 1 0 1 50" "3 1 6 2 1000" "2 0 0 0 5000" "1 1 0 0 0" "1 0 0 2 0" "0 0 0 0 7" >calls.ops
  heaptape import -q -F mallocbench -o o.htw calls.ops
  [ "$status" -eq 0 ]
  "$HEAPTAPE" stat --json o.htw >stat.json
  [ "$(jq -c '[.by_kind.malloc, .by_kind.memalign, .by_kind.realloc, .by_kind.free]' stat.json)" = "[3,1,1,2]" ]
  [ "$(jq -c '[.threads, .live_at_end_bytes, .remote_frees, .unmatched_frees]' stat.json)" = "[2,57,2,0]" ]
  "$HEAPTAPE" dump o.htw | grep -q 'memalign(.*64.*1000\|memalign(.*1000.*64'
  heaptape replay -q --runs 1 o.htw
  [ "$status" -eq 0 ]
}

@test "mallocbench: bad files are refused with the offset and the expectation" {
  ops "0 0 0 0 100" "4 0 0 0 0" >bad
  heaptape import -F mallocbench -o o.htw bad
  fails_with 1 "bad: expected an opcode of 0 to 3, found 4" "at byte 24"
  ops "0 0 0 0 100" "3 0 48 1 10" >bad
  heaptape import -F mallocbench -o o.htw bad
  fails_with 1 "bad: expected an alignment of at most 2^47" "at byte 24"
  ops "0 0 0 4294967296 100" >bad
  heaptape import -F mallocbench -o o.htw bad
  fails_with 1 "bad: expected a slot below 2^32" "at byte 0"
  ops "0 0 0 0 100" | head -c 20 >bad
  heaptape import -F mallocbench -o o.htw bad
  fails_with 1 "bad: cut off inside a record that begins at byte 0"
}

@test "heaptrack: a file whose contents exceed its size is refused" {
  python3 - <<'END' | zstd -qc >small.zst
print('v 10400 3\ns 2 /a\ns 1 f')
for _ in range(120000):
    print('i 1000 1' + ' 2 1 1' * 64)
END
  [ "$(stat -c %s small.zst)" -lt 50000 ]
  heaptape import -F heaptrack -o y.htw small.zst
  fails_with 1 "small.zst: exceeds the memory limit for a file of this size, at byte" "decompress it first"
  heaptape import -k -q -F heaptrack -o y.htw small.zst
  fails_with 1 "small.zst: exceeds the memory limit for a file of this size"
  # Only the innermost of nested inlined functions are kept.
  printf 'v 10400 3\ns 2 /a\ns 1 f\ni 1000 1%s\nt 1 0\na 10 1\n+ 0\n' "$(printf ' 2 1 1%.0s' {1..500})" >many
  heaptape import -q -F heaptrack -o many.htw many
  expect "status 0" [ "$status" -eq 0 ]
  [ "$("$HEAPTAPE" stat --by site --json many.htw | jq '.sites[0].frames | length')" -eq 64 ]
  # This file is larger, so the same number of names is accepted.
  { zstd -qdc small.zst; printf 't 1 0\na 10 1\n+ 0\n'; } | heaptape import -q -F heaptrack -o y.htw -
  expect "status 0" [ "$status" -eq 0 ]
}
