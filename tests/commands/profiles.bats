# Call sites as profiles for other tools, each checked against the published format.

load ../helper

# A workload of one process: 700 bytes of main → fill → fill_more in seven blocks, 1,000 bytes of
# main alone, 50 bytes without a stack.
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
