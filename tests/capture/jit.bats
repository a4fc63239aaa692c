# Names of generated code from /tmp/perf-PID.map and jit-PID.dump.

load trace

setup() {
  skip_under_sanitizer
  [ "$(uname -m)" = x86_64 ] || skip "the program's code is x86-64's"
  cd "$BATS_TEST_TMPDIR" || return
}

teardown() {
  show_failure
  [ ! -s told ] || rm -f "$(grep -o '^/tmp/perf-[0-9]*\.map$' told | head -1)"
}

jit() {
  record_options=--stacks record "$HEAPTAPE_PROGRAMS/jit" "$@"
  expect "done" [ "$status" -eq 0 ]
}

# The functions of the stack with the generated code, innermost first.
functions() {
  "$HEAPTAPE" stat -q --by site --format json "$1" | jq -c '[.sites[] | select(.allocated_bytes == 7777) | .frames[].function][0:3]'
}

@test "jit: the trace has the names, even if the map is gone, and passes them to the workload" {
  printf '%s\n' '@ 1000 LazyCompile:~render /app/page.js:7' >map
  jit map
  [ ! -e "$(cat told)" ]
  [ "$(functions t.ht)" = '["allocate","LazyCompile:~render /app/page.js:7","main"]' ]
  "$HEAPTAPE" convert -q -f -o t.htw t.ht
  [ "$(functions t.htw)" = '["allocate","LazyCompile:~render /app/page.js:7","main"]' ]
  "$HEAPTAPE" symbolize -q t.ht
  [ "$(functions t.ht)" = '["allocate","LazyCompile:~render /app/page.js:7","main"]' ]
  # A workload has only names that its stacks need.
  [ "$("$HEAPTAPE" stat --by site t.htw | grep -c render)" -eq 1 ]
}

@test "jit: the map of a short process can still be read" {
  printf '%s\n' '@ 1000 quick' >map
  jit map stay
  [ "$(functions t.ht)" = '["allocate","quick","main"]' ]
}

@test "jit: the last name of an address applies, up to the end of its code" {
  printf '%s\n' '@ 1000 first' '@ 1000 second' '@ 0 nothing' '0x1 10 elsewhere' >map
  jit map stay
  [ "$(functions t.ht)" = '["allocate","second","main"]' ]
  printf '%s\n' '@ 4 too short' >map
  rm -f "$(cat told)"
  jit map stay
  [[ "$(functions t.ht)" == '["allocate","[code without a file]+0x'* ]]
}

@test "jit: binary names, invalid lines and an unfinished line are counted, and recording continues" {
  {
    printf '@ 1000 \001\033[31mred\377\n'
    printf 'no line\n\n\n12 zz name\n123456789012345678901 1 long\n5 5\n'
    head -c 300000 /dev/zero | tr '\0' 'f'
  } >map
  record_options=--stacks
  heaptape record -f --stacks -o t.ht -- "$HEAPTAPE_PROGRAMS/jit" map stay
  expect "done" [ "$status" -eq 0 ]
  printf '%s\n' "$output" >told
  has "$stderr" "records of perf-PID.map or jit-PID.dump were skipped"
  "$HEAPTAPE" stat --by site t.ht >text
  grep -q 'red' text
  # No control characters for a terminal.
  run grep -cP '[\x00-\x08\x0b-\x1f\x7f]' text
  [ "$output" = 0 ]
}

@test "jit: maps of other users, symbolic links and older maps are ignored" {
  printf '%s\n' '@ 1000 stale' >map
  # The program writes through the link, but the recorder does not follow it.
  cat >link.sh <<'END'
ln -sf "$PWD/elsewhere" "/tmp/perf-$$.map"
exec "$@"
END
  record_options='--stacks' record sh link.sh "$HEAPTAPE_PROGRAMS/jit" map stay
  expect "done" [ "$status" -eq 0 ]
  [ -s elsewhere ]
  [[ "$(functions t.ht)" != *stale* ]]
}

@test "jit: a jitdump has names and lines, also for a short process" {
  : >tail
  jit --dump tail
  [ "$(functions t.ht)" = '["allocate","dumped","main"]' ]
  # The call is the third instruction, 4 bytes from the start.
  "$HEAPTAPE" stat -q --by site --format json t.ht | jq -e '[.sites[].frames[] | select(.function == "dumped") | [.file, .line]] == [["/src/page.c", 8]]'
  rm jit-*.dump
  "$HEAPTAPE" convert -q -f -o t.htw t.ht
  [ "$(functions t.htw)" = '["allocate","dumped","main"]' ]
}

@test "jit: a jitdump that is created late" {
  : >tail
  jit --late tail
  [ "$(functions t.ht)" = '["allocate","dumped","main"]' ]
}

@test "jit: broken records of a jitdump, and other files, are skipped, and recording continues" {
  # The records are a function without a name, a function with 2^32 missing bytes, a list of 2^60
  # lines, and a record of size 0.
  python3 - <<'END'
import struct
def record(kind, body, size=None):
    return struct.pack("<IIQ", kind, 16 + len(body) if size is None else size, 0) + body
load = lambda name, size: struct.pack("<IIQQQQ", 1, 1, 4096, 4096, size, 1) + name
open("bad", "wb").write(record(0, load(b"\0", 8)) + record(2, struct.pack("<QQ", 4096, 1 << 60) + b"x" * 90) + record(1, b"m" * 48) + record(0, load(b"far\0", 8)) + record(9, b"", 0))
open("cut", "wb").write(record(0, load(b"f\0", 8), 0xffffffff))
open("random", "wb").write(bytes(i * 7919 >> 3 & 255 for i in range(300000)))
END
  for tail in bad cut random; do
    heaptape record -f --stacks -o t.ht -- "$HEAPTAPE_PROGRAMS/jit" --dump "$tail"
    expect "$tail: done" [ "$status" -eq 0 ]
    expect "$tail: the name before it" [ "$(functions t.ht)" = '["allocate","dumped","main"]' ]
    [ "$tail" != bad ] || has "$stderr" "records of perf-PID.map or jit-PID.dump were skipped"
    rm jit-*.dump
  done
}

@test "jit: node's jitdump" {
  command -v node >/dev/null || skip "no node"
  cat >app.js <<'END'
function makeBuffers(n) {
  const kept = [];
  for (let i = 0; i < n; i++) kept.push(Buffer.allocUnsafeSlow(100000 + i % 7));
  return kept.length;
}
let all = 0;
for (let i = 0; i < 30; i++) all += makeBuffers(20);
console.log(all);
END
  record_options=--stacks record node --perf-prof --interpreted-frames-native-stack app.js
  expect "done" [ "$status" -eq 0 ]
  "$HEAPTAPE" stat -q --by site --format folded t.ht | grep -q 'makeBuffers .*app.js:1'
}

@test "jit: node's functions" {
  command -v node >/dev/null || skip "no node"
  cat >app.js <<'END'
function makeBuffers(n) {
  const kept = [];
  for (let i = 0; i < n; i++) kept.push(Buffer.allocUnsafeSlow(100000 + i % 7));
  return kept.length;
}
let all = 0;
for (let i = 0; i < 300; i++) all += makeBuffers(20);
console.log(all);
console.log('/tmp/perf-' + process.pid + '.map');
END
  record_options=--stacks record node --perf-basic-prof --interpreted-frames-native-stack app.js
  expect "done" [ "$status" -eq 0 ]
  grep -q '^6000$' told
  sed -n 2p told >map && mv map told
  rm -f "$(cat told)" isolate*.log
  # The output is not JSON, because the tests would validate 300,000 frames.
  "$HEAPTAPE" stat -q --by site --format folded t.ht | grep -q makeBuffers
  # The map named functions, so no finding asks for a map.
  "$HEAPTAPE" stat -q --json t.ht >stat.json
  jq -e '.stack_coverage.interpreted.node | .named_bytes > 0 and .named_bytes <= .allocated_bytes' stat.json
  [ "$(jq '[.findings[] | select(.name == "unnamed_code")] | length' stat.json)" -eq 0 ]
}
