# Call sites as profiles for other tools, each checked against the published format.

load ../helper

# Writes a workload of one process. The stack main, fill, fill_more allocates seven blocks of 100
# bytes. The stack main allocates 1,000 bytes. 50 bytes have no stack.
workload() {
  {
    echo '{"kind":"heaptape.module","pid":7,"tid":7,"time_ns":1,"ptr":"0x10000","size":4096,"offset":0,"text":"00 /home/me/app"}'
    echo '{"kind":"heaptape.stack","pid":7,"tid":7,"time_ns":1,"site":1,"frames":["0x10030","0x10020","0x10010"]}'
    echo '{"kind":"heaptape.stack","pid":7,"tid":7,"time_ns":1,"site":2,"frames":["0x10010"]}'
    for i in 1 2 3 4 5 6 7; do
      echo '{"kind":"malloc","pid":7,"tid":7,"time_ns":2,"size":100,"result":"0xa'$i'000","site":1}'
    done
    echo '{"kind":"malloc","pid":7,"tid":7,"time_ns":3,"size":1000,"result":"0xb0000","site":2}'
    echo '{"kind":"malloc","pid":7,"tid":7,"time_ns":4,"size":50,"result":"0xc0000"}'
  } >t.json
  "$HEAPTAPE" import -q --format json -o t.htw t.json
}

@test "profiles: speedscope's schema, and the stacks with their weights" {
  workload
  "$HEAPTAPE" stat -q --by site --format speedscope t.htw >s.json
  "$HEAPTAPE" stat -q --by site --format speedscope --weight allocs t.htw >calls.json
  python3 - <<'END'
import json
# https://www.speedscope.app/file-format-schema.json: FileFormat.File, Frame and SampledProfile.
def check(name):
    d = json.load(open(name))
    assert d['$schema'] == 'https://www.speedscope.app/file-format-schema.json'
    assert set(d) <= {'$schema', 'shared', 'profiles', 'name', 'activeProfileIndex', 'exporter'}
    assert list(d['shared']) == ['frames'] and len(d['profiles']) == 1
    for f in d['shared']['frames']:
        assert set(f) <= {'name', 'file', 'line', 'col'} and isinstance(f['name'], str)
        assert all(isinstance(f[k], int) for k in ('line', 'col') if k in f)
    p = d['profiles'][0]
    assert set(p) == {'type', 'name', 'unit', 'startValue', 'endValue', 'samples', 'weights'} and p['type'] == 'sampled'
    assert p['unit'] in ('none', 'nanoseconds', 'microseconds', 'milliseconds', 'seconds', 'bytes')
    assert len(p['samples']) == len(p['weights']) and p['endValue'] - p['startValue'] == sum(p['weights'])
    frames = [f['name'] for f in d['shared']['frames']]
    return p['unit'], {tuple(frames[i] for i in s): w for s, w in zip(p['samples'], p['weights'])}
stacks = {('app+0x10', 'app+0x20', 'app+0x30'): 700, ('app+0x10',): 1000, ('(unknown)',): 50}
assert check('s.json') == ('bytes', stacks), check('s.json')
assert check('calls.json') == ('none', {k: v for k, v in zip(stacks, (7, 1, 1))}), check('calls.json')
END
}

@test "profiles: a heap profile for jeprof" {
  command -v jeprof >/dev/null || skip "jeprof is not installed"
  workload
  "$HEAPTAPE" stat -q --by site --format jeprof t.htw >t.heap
  jeprof --text --cum --show_bytes t.heap 2>err | awk 'NF == 6 { print $1, $4, $6 }' | LC_ALL=C sort >shown
  cat shown err
  expect "own bytes and bytes with callees" diff shown - <<'END'
0 700 app+0x20
1000 1700 app+0x10
50 50 unknown
700 700 app+0x30
END
  "$HEAPTAPE" stat -q --by site --format jeprof --weight end t.htw >end.heap
  expect "the same blocks at the end" cmp t.heap end.heap
}

@test "profiles: Firefox Profiler's processed profile" {
  workload
  "$HEAPTAPE" stat -q --by site --format firefox --weight end t.htw >f.json
  python3 - <<'END'
import json
# src/types/profile.js of github.com/firefox-devtools/profiler, version 48: tables are columns of one length.
d = json.load(open('f.json'))
assert d['meta']['preprocessedProfileVersion'] == 48 and d['libs'] == [] and len(d['threads']) == 1
assert isinstance(d['meta']['interval'], int) and isinstance(d['meta']['startTime'], int) and d['meta']['markerSchema'] == []
assert all(set(c) == {'name', 'color', 'subcategories'} for c in d['meta']['categories'])
t = d['threads'][0]
tables = {
    'samples': {'stack', 'time', 'weight', 'weightType', 'length'},
    'stackTable': {'frame', 'category', 'subcategory', 'prefix', 'length'},
    'frameTable': {'address', 'inlineDepth', 'category', 'subcategory', 'func', 'nativeSymbol', 'innerWindowID', 'implementation', 'line', 'column', 'length'},
    'funcTable': {'name', 'isJS', 'relevantForJS', 'resource', 'fileName', 'lineNumber', 'columnNumber', 'length'},
    'resourceTable': {'lib', 'name', 'host', 'type', 'length'},
    'nativeSymbols': {'libIndex', 'address', 'name', 'functionSize', 'length'},
    'markers': {'data', 'name', 'startTime', 'endTime', 'phase', 'category', 'length'},
}
for name, columns in tables.items():
    assert set(t[name]) == columns, name
    assert all(len(c) == t[name]['length'] for c in t[name].values() if isinstance(c, list)), name
assert t['samples']['weightType'] == 'bytes' and t['samples']['time'] == sorted(t['samples']['time'])
strings, stacks, frames, functions = t['stringArray'], t['stackTable'], t['frameTable'], t['funcTable']
def functions_of(stack):
    # A prefix precedes the stacks that refer to it.
    prefix = stacks['prefix'][stack]
    assert prefix is None or prefix < stack
    return (functions_of(prefix) if prefix is not None else ()) + (strings[functions['name'][frames['func'][stacks['frame'][stack]]]],)
seen = {functions_of(s): w for s, w in zip(t['samples']['stack'], t['samples']['weight'])}
assert seen == {('app+0x10', 'app+0x20', 'app+0x30'): 700, ('app+0x10',): 1000, ('(unknown)',): 50}, seen
END
}

@test "profiles: a truncated, garbled or non-ELF debug file gives addresses without a hang" {
  skip_under_sanitizer
  workload
  mkdir -p d/.build-id/01
  build_id=01$(printf '23%.0s' $(seq 19))
  sed "s|00 /home/me/app|$build_id /home/me/app|" t.json >id.json
  "$HEAPTAPE" import -q -f --format json -o t.htw id.json
  printf 'int main(void) { return 0; }\n' | gcc -g -x c -Wl,--build-id=0x"$build_id" -o whole -
  size=$(stat -c %s whole)
  file=d/.build-id/01/${build_id:2}
  for keep in 0 1 4 16 63 64 100 400 1000 $((size / 2)) $((size - 100)); do
    head -c "$keep" whole >"$file"
    heaptape stat --by site --format folded --debug-dir d t.htw
    expect "cut at $keep" [ "$status" -eq 0 ]
  done
  python3 - "$file" <<'END'
import sys
whole = bytearray(open('whole', 'rb').read())
for i in range(40):
    bad = bytearray(whole)
    for k in range(30):
        at = (i * 7919 + k * 104729) % (64 + 56 * 13 if k % 2 else len(bad))
        bad[at] = (i * 31 + k * 17) & 255
    open(f'bad{i}', 'wb').write(bad)
END
  for i in $(seq 0 39); do
    cp "bad$i" "$file"
    run timeout 120 "$HEAPTAPE" stat --by site --format folded --debug-dir d t.htw
    expect "garbled $i" [ "$status" -eq 0 ]
  done
  # heaptape must not wait for a named pipe.
  rm "$file"
  mkfifo "$file"
  run timeout 120 "$HEAPTAPE" stat --by site --format folded --debug-dir d t.htw
  expect "pipe" [ "$status" -eq 0 ]
}

# Blocks of two call sites and of an unknown site, with known times. Live bytes are highest at 5 ms.
timed_workload() {
  python3 - >t.json <<'END'
import json
def put(kind, ms, **more):
    print(json.dumps({'kind': kind, 'pid': 7, 'tid': 7, 'time_ns': ms * 1000000, **more}))
put('heaptape.module', 0, ptr='0x10000', size=4096, offset=0, text='00aa /home/me/app')
put('heaptape.stack', 0, site=1, frames=['0x10030', '0x10020', '0x10010'])
put('heaptape.stack', 0, site=2, frames=['0x10010'])
put('malloc', 0, size=8, result='0x100')
put('free', 0, ptr='0x100')
put('malloc', 1, size=1000, result='0x1000', site=2)
for i in range(7):
    put('malloc', 2, size=100, result=hex(0x2000 + 0x100 * i), site=1)
put('malloc', 5, size=50, result='0x3000')
for i in range(7):
    put('free', 10, ptr=hex(0x2000 + 0x100 * i))
put('malloc', 100, size=300, result='0x4000', site=1)
put('free', 110, ptr='0x3000')
END
  "$HEAPTAPE" import -q --format json -o t.htw t.json
}

@test "profiles: DHAT's file, with the totals and lifetimes of each call stack" {
  timed_workload
  heaptape export -F dhat -o d.json t.htw
  [ "$status" -eq 0 ]
  [ "$stderr" = "" ]
  python3 - <<'END'
import json
# Version 2, as described in dhat/dh_main.c of Valgrind.
d = json.load(open('d.json'))
assert d['dhatFileVersion'] == 2 and d['mode'] == 'heap' and d['bklt'] is True and d['bkacc'] is False
assert (d['tu'], d['pid'], d['te'], d['tg']) == ('µs', 7, 110000, 5000), d
assert d['ftbl'][0] == '[root]' and all(p['fs'] and min(p['fs']) > 0 for p in d['pps'])
seen = {tuple(d['ftbl'][f] for f in p['fs']): [p[k] for k in 'tb tbk tl mb mbk gb gbk eb ebk'.split()] for p in d['pps']}
outer = '0x1000F: app+0x10 (in /home/me/app)'
assert seen == {
    ('(unknown)',): [58, 2, 105000, 50, 1, 50, 1, 0, 0],
    ('0x1002F: app+0x30 (in /home/me/app)', '0x1001F: app+0x20 (in /home/me/app)', outer): [1000, 8, 7 * 8000 + 10000, 700, 7, 700, 7, 300, 1],
    (outer,): [1000, 1, 109000, 1000, 1, 1000, 1, 1000, 1]}, seen
END
  # Without timestamps, times count events.
  "$HEAPTAPE" export -q --no-timestamps -F dhat t.htw >events.json
  [ "$(jq -c '[.tu, .te, .tg]' events.json)" = '["events",19,10]' ]
  [ "$(jq '[.pps[].tb] | add' events.json)" -eq 2058 ]
  # The output does not depend on the order of call sites, or on whether the input is a pipe.
  "$HEAPTAPE" export -q -F dhat - <t.htw | cmp - d.json
}

@test "profiles: Valgrind's viewer builds its tree of a DHAT file" {
  viewer=/usr/libexec/valgrind/dh_view.js
  [ -e "$viewer" ] && command -v node || skip "no dh_view.js or no node"
  timed_workload
  "$HEAPTAPE" export -q -F dhat -o d.json t.htw
  # A line contains bytes, blocks, lifetimes, bytes at the peak, bytes at the end, and frames.
  node "$HEAPTAPE_SOURCE/tests/commands/dh_view.mjs" "$viewer" d.json >tree
  [ "$(head -1 tree)" = "2058 11 280000 1750 1300 [root]" ]
  grep -qF " 1000 8 66000 700 300 0x1002F: app+0x30 (in /home/me/app) < 0x1001F: app+0x20 (in /home/me/app) < 0x1000F: app+0x10 (in /home/me/app)" tree
}

@test "profiles: Perfetto's heap profile, with dumps over time and the peak" {
  timed_workload
  heaptape export -F perfetto -o p.pftrace t.htw
  [ "$status" -eq 0 ]
  [ "$stderr" = "" ]
  python3 - <<'END'
# Fields of protos/perfetto/trace/*.proto in github.com/google/perfetto.
def number(data, at):
    v = shift = 0
    while True:
        v |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return v, at
def fields(data):
    at, out = 0, {}
    while at < len(data):
        tag, at = number(data, at)
        v, at = number(data, at)
        if tag & 7 == 2:
            v, at = data[at:at + v], at + v
        out.setdefault(tag >> 3, []).append(v)
    return out
one = lambda f, n: f[n][0] if n in f else 0
interned, heaps, clocks, command, began = {}, [], {}, None, False
for data in fields(open('p.pftrace', 'rb').read())[1]:
    packet = fields(data)
    for c in fields(one(packet, 6) or b'').get(1, []):
        clocks[one(fields(c), 1)] = one(fields(c), 2)
    for p in fields(one(packet, 2) or b'').get(1, []):
        command = one(fields(p), 1)
    if 12 in packet or 37 in packet:
        assert one(packet, 13) == (2 if began else 1), packet
        began = True
    for kind, items in fields(one(packet, 12) or b'').items():
        for item in map(fields, items):
            assert (kind, one(item, 1)) not in interned
            interned[kind, one(item, 1)] = item
    if 37 in packet:
        profile = fields(packet[37][0])
        assert one(profile, 7) == len(heaps)
        heaps.append(fields(profile[5][0]))
assert clocks[6] == clocks[4] == 0 and command == 7
def stack(id):
    out = []
    for f in interned[7, id][2]:
        frame = interned[6, f]
        mapping = interned[19, one(frame, 3)]
        out.append((one(interned[5, one(frame, 2)], 2).decode(), one(frame, 4), one(interned[17, one(mapping, 7)], 2).decode()))
    return tuple(out)
app = next(m for (kind, _), m in interned.items() if kind == 19 and interned[17, m[7][0]][2] == [b'/home/me/app'])
assert [one(app, n) for n in (4, 5, 8)] == [0x10000, 0x11000, 0] and interned[16, one(app, 2)][2] == [b'\x00\xaa'], app
def samples(heap):
    return {stack(one(s, 1)): tuple(one(s, k) for k in (2, 3, 5, 6)) for s in map(fields, heap.get(2, []))}
outer, inner = ('app+0x10', 0xf, '/home/me/app'), (('app+0x20', 0x1f, '/home/me/app'), ('app+0x30', 0x2f, '/home/me/app'))
deep, unknown = (outer, *inner), (('(unknown)', 0, ''),)
names = [one(h, 11) for h in heaps]
assert names == [b'libc.malloc'] * (len(heaps) - 1) + [b'malloc at its peak'], names
# Cumulative totals: allocated bytes, freed bytes, allocations, frees.
totals, live = {}, {}
for h in heaps[:-1]:
    for s, new in samples(h).items():
        assert new != totals.get(s) and all(a >= b for a, b in zip(new, totals.get(s, (0, 0, 0, 0))))
        totals[s] = new
    live[one(h, 9) // 1000000] = sum(t[0] - t[1] for t in totals.values())
assert totals == {unknown: (58, 58, 2, 2), deep: (1000, 700, 8, 7), (outer,): (1000, 0, 1, 0)}, totals
assert live[2] in (1100, 1700) and live[5] == 1750 and live[100] == 1350 and live[110] == 1300, live
assert [(one(h, 15), one(h, 9)) for h in heaps[1:-1]] == [(one(a, 9), one(b, 9)) for a, b in zip(heaps, heaps[1:-1])]
assert one(heaps[-1], 9) == 5000000
assert samples(heaps[-1]) == {unknown: (50, 0, 1, 0), deep: (700, 0, 7, 0), (outer,): (1000, 0, 1, 0)}
END
}

@test "profiles: an export of a recording without call stacks says that" {
  printf '%s\n' '{"kind":"malloc","pid":7,"tid":7,"time_ns":2,"size":100,"result":"0xa000"}' >t.json
  "$HEAPTAPE" import -q --format json -o t.htw t.json
  for format in dhat perfetto; do
    heaptape export -f -F $format -o "t.$format" t.htw
    [ "$status" -eq 0 ]
    [[ "$stderr" == *"has no call stacks: all blocks have one row (record with --stacks)"* ]]
    [ -s "t.$format" ]
  done
  [ "$(jq -c '[.cmd, .ftbl[1], .pps[0].eb]' t.dhat)" = '["unknown program","(unknown)",100]' ]
}

@test "profiles: recorded as a DHAT file, and a truncated workload is refused" {
  skip_under_sanitizer
  heaptape record -q --stacks --format dhat -o live.json -- ls
  [ "$status" -eq 0 ]
  jq -e '(.cmd | endswith("ls")) and ([.pps[].tb] | add) > 0 and (.ftbl | length) > 3' live.json
  # The times, in µs, begin at the start of the process.
  "$HEAPTAPE" record -q --stacks -o live.htw -- ls >/dev/null
  "$HEAPTAPE" export -q -F dhat -o again.json live.htw
  jq -e --argjson ns "$("$HEAPTAPE" stat --json live.htw | jq .duration_ns)" '0 < .te and .te * 1000 <= $ns' again.json
  timed_workload
  head -c $(($(stat -c %s t.htw) - 20)) t.htw >cut.htw
  for format in dhat perfetto; do
    heaptape export -F $format -o "cut.$format" cut.htw
    fails_with 1 "cut.htw: "
    [ ! -e "cut.$format" ]
  done
}

@test "stat --by site: one of several processes is named, and the call sites of a truncated file are lost" {
  workload
  echo '{"kind":"malloc","pid":8,"tid":8,"time_ns":5,"size":1,"result":"0xa1000"}' >>t.json
  "$HEAPTAPE" import -q --format json --trace -o t.ht t.json
  heaptape stat --by site t.ht
  expect "status 0" [ "$status" -eq 0 ]
  grep -qx 'heaptape: call sites of process 7 (unknown program), one of 2 processes' <<<"$stderr"
  heaptape stat --by site t.htw
  expect "one process" [ "${stderr#*call sites of process}" = "$stderr" ]
  head -c $(($(stat -c %s t.htw) / 3)) t.htw >cut.htw
  heaptape stat --by site cut.htw
  expect "status 1" [ "$status" -eq 1 ]
  grep -qx "heaptape: cut.htw: the call sites are lost: the end of the file is cut off" <<<"$stderr"
}
