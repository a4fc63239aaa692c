load ../helper

make_workload() {
  "$HEAPTAPE_PROGRAMS/make_workload" a.htw churn 3 2000 >/dev/null
}

# data PAGE PATH: a value of the page's data, by a Python expression on d.
data() {
  python3 -c "
import json, re, sys
d = json.loads(re.search(r'id=\"data\">(.*?)</script>', open(sys.argv[1]).read(), re.S).group(1))
print($2)" "$1"
}

# looks_right: checks the page in a browser. If there is no browser, the check is skipped.
looks_right() {
  [ -z "$HEAPTAPE_SANITIZED" ] || return 0
  run "$HEAPTAPE_SOURCE/tests/page/page_check.py" "$@"
  [ "$status" -ne 77 ] || skip "$output"
  expect "a correct page" [ "$status" -eq 0 ]
}

@test "report: a page with stat's numbers" {
  make_workload
  heaptape report -o a.html a.htw
  expect "done" [ "$status" -eq 0 ]
  [ "$(stat -c %s a.html)" -lt 3145728 ]
  "$HEAPTAPE" stat --json a.htw >a.json
  [ "$(data a.html "d['workloads'][0]['stat'] == json.load(open('a.json'))")" = True ]
  [ "$(data a.html "d['mode'], d['workloads'][0]['name'], d['results']")" = "report a.htw []" ]
  # From JSON, report makes the same page.
  heaptape report -o b.html a.json
  [ "$(data b.html "d['workloads'][0]['stat'] == json.load(open('a.json'))")" = True ]
  heaptape report -o - a.htw
  [ "${output:0:15}" = "<!DOCTYPE html>" ]
}

@test "report: the JSON of stat gives the figures and findings of its recording" {
  make_workload
  "$HEAPTAPE" stat --json a.htw >a.json
  heaptape report -o a.html a.json
  [ "$(data a.html "len(d['findings']) > 3 and d['findings'] == json.load(open('a.json'))['findings']")" = True ]
  # Findings of other versions are skipped.
  jq '.findings[1].name = "of_a_newer_version"' a.json >newer.json
  heaptape report -o n.html newer.json
  [ "$(data n.html "d['findings'] == [f for f in json.load(open('newer.json'))['findings'] if f['name'] != 'of_a_newer_version']")" = True ]
  heaptape report --diff -o b.html a.htw a.json
  [ "$(data b.html "len(d['diff']) > 15 and [r for r in d['diff'] if r['a'] != r['b'] and r['label'] != 'mean requested size']")" = "[]" ]
  # Each row of the table of totals has a number or is unknown.
  [ "$(data a.html "[f['path'] for f in d['stat_figures'] if f['path'].split('.')[0] not in d['workloads'][0]['stat'] and f['path'] != 'usable_bytes']")" = "[]" ]
}

@test "report: the policy allows the page's own scripts and styles, and nothing else" {
  make_workload
  "$HEAPTAPE" report -o a.html a.htw
  python3 - <<'END'
import base64, hashlib, re
html = open('a.html', encoding='utf-8', newline='').read()
policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html).group(1)
texts = re.findall(r'<(?:script|style)>(.*?)</(?:script|style)>', html, re.S)
digests = ["'sha256-" + base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() + "'" for t in texts]
assert len(texts) >= 4 and all(d in policy for d in digests)
assert policy.startswith("default-src 'none'; ") and 'unsafe' not in policy
assert sorted(digests) == sorted(re.findall(r"'sha256-[^']*'", policy))
assert not re.search(r'<[^>]* on[a-z]+=|src=|https?://[^"]*"[^>]*>', re.sub(r'<script.*?</script>', '', html, flags=re.S))
END
}

@test "report: names in a file are inserted as text" {
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <<'END'
process 100 </script><script>document.title='bad'</script> <img/src=x>
0 1000 malloc size=1000 result=0x1000
0 2000 free ptr=0x1000
end
END
  heaptape report -q -o a.html a.ht
  [ "$status" -eq 0 ]
  [ "$(grep -c "title='bad'" a.html)" -eq 1 ]
  [ "$(grep -o '<script' a.html | wc -l)" -eq "$(grep -o '</script' a.html | wc -l)" ]
  [ "$(data a.html "d['workloads'][0]['stat']['processes'][0]['argv'][1]")" = "<img/src=x>" ]
  looks_right a.html
}

@test "report: the document matches its schema" {
  make_workload
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <<<$'process 100 prog\n0 1000 malloc size=1000 result=0x1000\nend'
  "$HEAPTAPE" replay --json --runs 1 a.htw >a.json
  "$HEAPTAPE" report -q -o a.html a.ht a.htw a.json
  "$HEAPTAPE" report -q --diff -f -o b.html a.htw a.htw >/dev/null
  data a.html "json.dumps(d)" >a.document
  data b.html "json.dumps(d)" >b.document
  run "$HEAPTAPE_SOURCE/tools/check-json" report a.document b.document
  [ "$status" -ne 77 ] || skip "$output"
  expect "valid" [ "$status" -eq 0 ]
}

@test "report: long series are shortened and keep their extremes" {
  make_workload
  "$HEAPTAPE" replay --json --runs 1 a.htw >a.json
  python3 - <<'END'
import json
r = json.load(open('a.json'))
r['timeline'] = [[i, i * 10, 1000 + i % 7, 500 + i % 5] for i in range(100000)]
r['timeline'][77777][2] = 999999
r['timeline'][33333][3] = 1
json.dump(r, open('b.json', 'w'))
END
  heaptape report -o b.html b.json
  expect "done" [ "$status" -eq 0 ]
  [ "$(data b.html "len(d['results'][0]['result']['timeline']) <= 602")" = True ]
  [ "$(data b.html "[77777, 777770, 999999, 502] in d['results'][0]['result']['timeline']")" = True ]
  [ "$(data b.html "min(t[3] for t in d['results'][0]['result']['timeline'])")" = 1 ]
}

# once NAME COMMAND: runs the command in the directory NAME, which the tests of this file share, unless
# an earlier test did. Copies the files of the directory.
once() {
  local shared=$BATS_FILE_TMPDIR/$1
  if [ ! -e "$shared.made" ]; then
    rm -rf "$shared"
    mkdir "$shared"
    (cd "$shared" && set -e && "$2")
    : >"$shared.made"
  fi
  find "$shared" -maxdepth 1 -type f -exec cp {} . ';'
}

# Records a program with known call sites and hostile names into t.ht and t.htw.
with_sites() {
  skip_under_sanitizer
  once sites record_sites
}

record_sites() {
  mkdir 'a<b>'
  cat >'a<b>/<img src=x>.c' <<'END'
#include <stdlib.h>
__attribute__((noinline)) static void *keep(size_t size) { return malloc(size); }
__attribute__((noinline)) static void *pass(size_t size) { return malloc(size); }
int main(void)
{
    void *volatile kept;
    void *volatile passed = pass(100000);
    for (int i = 0; i < 7; i++)
        kept = keep(1000);
    free(passed);
    kept = pass(50);
    return kept == NULL;
}
END
  gcc -g -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls -o 'a<b>/program' 'a<b>/<img src=x>.c'
  "$HEAPTAPE" record -q --stacks=8 -o t.ht -- 'a<b>/program'
  "$HEAPTAPE" convert -q -o t.htw t.ht
}

# sites PAGE LIST KEY FUNCTION: the sum over the listed sites with this innermost function. The
# profile has the functions.
sites() {
  data "$1" "(lambda w: sum(s['$3'] for s in w['stat']['call_sites']['$2'] for p in [w['profile']] if p['frames'][p['stack_frames'][p['stacks'][p['sites'].index(s['site'])]]]['function'] == '$4'))(d['workloads'][0])"
}

@test "report: memory by call site" {
  with_sites
  heaptape report -o t.html t.htw
  expect "done" [ "$status" -eq 0 ]
  [ "$(sites t.html at_peak live_at_peak_bytes pass)" -eq 100000 ]
  [ "$(sites t.html at_peak live_at_peak_bytes keep)" -eq 7000 ]
  [ "$(sites t.html at_peak live_at_peak_blocks keep)" -eq 7 ]
  [ "$(sites t.html at_end live_at_end_bytes keep)" -eq 7000 ]
  [ "$(sites t.html at_end live_at_end_bytes pass)" -eq 50 ]
  # Each stack is in the page once.
  [ "$(data t.html "[s['frames'] for l in d['workloads'][0]['stat']['call_sites'].values() if isinstance(l, list) for s in l if s['frames']]")" = "[]" ]
  # Equals the complete stat --by site, since there are few sites. Also for a trace.
  "$HEAPTAPE" stat --by site --format json t.htw >by.json
  "$HEAPTAPE" stat --json t.htw >w.json
  "$HEAPTAPE" stat --json t.ht >t.json
  python3 - <<'END'
import json
by, w, t = (json.load(open(name + '.json')) for name in ('by', 'w', 't'))
sites = w['call_sites']
assert sites == t['call_sites'] and sites['peak_live_bytes'] == by['peak_live_bytes'] == w['peak_live_bytes']
assert sites['sites'] == len(by['sites']) and sites['live_at_end_bytes'] == w['live_at_end_bytes']
for key, which in ('at_peak', 'live_at_peak_bytes'), ('at_end', 'live_at_end_bytes'):
    heaviest = sorted((s for s in by['sites'] if s[which]), key=lambda s: -s[which])[:20]
    assert [s[which] for s in sites[key]] == [s[which] for s in heaviest]
    # Includes figures that only the complete stat has.
    assert all(any(all(s[k] == b[k] for k in b) for b in by['sites']) for s in sites[key])
assert any(f['file'].endswith('<img src=x>.c') and f['line'] == 2 for s in sites['at_end'] for f in s['frames'])
END
  make_workload
  heaptape report -o a.html a.htw
  [ "$(data a.html "'call_sites' in d['workloads'][0]['stat']")" = False ]
  looks_right t.html
}

@test "report: call sites that pin pages have names if the workload is available" {
  with_sites
  "$HEAPTAPE" stat --json t.htw >w.json
  "$HEAPTAPE" replay --json --runs 1 t.htw >r.json
  python3 - <<'END'
import json
sites = json.load(open('w.json'))['call_sites']['at_end']
r = json.load(open('r.json'))
r['fragmentation'] = {'at_end': {'event': 9, 'pages': 3, 'live_bytes': 7050, 'sparse_pages': 1, 'stranded_bytes': 2000, 'by_site': [
    {'site': s['site'], 'blocks': s['live_at_end_blocks'], 'live_bytes': s['live_at_end_bytes'], 'stranded_bytes': 1000} for s in sites]}}
json.dump(r, open('r.json', 'w'))
END
  "$HEAPTAPE" report -o r.html t.htw r.json
  browser
  node "$HEAPTAPE_SOURCE/tests/page/look.mjs" "$chromium" r.html >look.json
  python3 - <<'END'
import json
rows = [r for t in json.load(open('look.json'))['tables'] if t['caption'] == 'Pinning blocks: glibc, at the end' for r in t['rows']]
row, = [r for r in rows if ', keep (<img src=x>.c:2)' in r['label']]
assert row['blocks'] == '7', row
END
}

@test "report: call sites that begin late" {
  with_sites
  make_workload
  "$HEAPTAPE" merge -q -o both.htw a.htw t.htw
  "$HEAPTAPE" stat --json both.htw >w.json
  "$HEAPTAPE" stat --by site --format json both.htw >by.json
  python3 - <<'END'
import json
by, w = (json.load(open(name + '.json')) for name in ('by', 'w'))
sites = w['call_sites']
assert sites['peak_live_bytes'] == by['peak_live_bytes'] == w['peak_live_bytes'], (sites['peak_live_bytes'], by['peak_live_bytes'], w['peak_live_bytes'])
assert sites['live_at_end_bytes'] == w['live_at_end_bytes']
for key, which in ('at_peak', 'live_at_peak_bytes'), ('at_end', 'live_at_end_bytes'):
    heaviest = sorted((s[which] for s in by['sites'] if s[which]), reverse=True)[:20]
    assert [s[which] for s in sites[key]] == heaviest, (key, sites[key], heaviest)
END
}

@test "report: call sites that pin pages" {
  make_workload
  "$HEAPTAPE" replay --json --runs 1 a.htw >a.json
  python3 - <<'END'
import json
def row(blocks, **label):
    return {**label, 'blocks': blocks, 'live_bytes': 48 * blocks, 'stranded_bytes': 4000 * blocks}
def moment(event, n):
    return {'event': event, 'pages': 900 * n, 'live_bytes': 1234567 * n, 'sparse_pages': 300 * n, 'stranded_bytes': 1000000 * n,
            'by_size': [row(5 * n, size_from=0, size_to=16), row(7 * n, size_from=17, size_to=32), row(9 * n, size_from=1 << 63, size_to=(1 << 64) - 1)],
            'by_age': [row(11 * n, age_from=1, age_to=1), row(13 * n, age_from=65537, age_to=131072)],
            'by_thread': [row(17 * n, thread=0), row(19 * n, thread=None)], 'by_site': [row(23 * n, site=0), row(29 * n, site=77)]}
r = json.load(open('a.json'))
r['fragmentation'] = {'at_peak': moment(1000, 2), 'at_end': moment(2000, 1)}
json.dump(r, open('b.json', 'w'))
END
  heaptape report -o b.html b.json
  expect "done" [ "$status" -eq 0 ]
  [ "$(data b.html "d['results'][0]['result']['fragmentation']['at_peak']['by_thread'][1]['blocks']")" -eq 38 ]
  looks_right b.html
  # With many call sites, the heaviest are named, and one row sums the rest.
  python3 - <<'END'
import json
r = json.load(open('b.json'))
h = r['fragmentation']['at_peak']
h['by_size'] = [{'size_from': 8, 'size_to': 15, 'blocks': 5000, 'live_bytes': 60000, 'stranded_bytes': 15000 * 1024}]
h['by_site'] = [{'site': i + 1, 'blocks': 1, 'live_bytes': 12, 'stranded_bytes': 3 * 1024} for i in range(5000)]
json.dump(r, open('c.json', 'w'))
END
  heaptape report -o c.html c.json
  [ "$(data c.html "[x['site'] for x in d['results'][0]['result']['fragmentation']['at_peak']['by_site']] == list(range(1, 101))")" = True ]
  browser
  node "$HEAPTAPE_SOURCE/tests/page/look.mjs" "$chromium" c.html >look.json
  python3 - <<'END'
import json
rows = [r for t in json.load(open('look.json'))['tables'] if t['caption'].endswith('glibc, at the peak') for r in t['rows']]
assert len([r for r in rows if r['label'].startswith('call site ')]) == 20, rows
other, = [r for r in rows if r['label'] == 'other call sites']
assert [x.replace('\u00a0', ' ').replace('\u202f', ' ') for x in (other['stranded_bytes'], other['live_bytes'], other['blocks'])] == ['14.6 MiB', '58.4 KiB', '4 980'], other
END
}

@test "report: the findings of the document, as a browser shows them" {
  with_sites
  "$HEAPTAPE" compare -q --json --no-latency -r 1 -a glibc -a glibc,X=1 t.htw >c.json
  "$HEAPTAPE" report -q -f -o found.html t.htw c.json
  browser
  node "$HEAPTAPE_SOURCE/tests/page/look.mjs" "$chromium" found.html >look.json
  python3 - <<'END'
import json, re
d = json.loads(re.search(r'id="data">(.*?)</script>', open('found.html').read(), re.S).group(1))
want = [(f['advice'] + ' ' if f['advice'] else '') + f['text'] for f in d['findings']]
assert {'peak', 'peak_of_a_site'} <= {f['name'] for f in d['findings']}, want
assert [' '.join(x.split()) for x in json.load(open('look.json'))['findings']] == want
END
}

@test "report: charts are printed on paper, light and dark" {
  make_workload
  "$HEAPTAPE" report -q -f -o print.html a.htw
  browser
  for how in "" --dark; do
    node "$HEAPTAPE_SOURCE/tests/page/look.mjs" "$chromium" print.html $how --pdf print.pdf >look.json
    python3 - <<'END'
import json, re, zlib
charts = len(json.load(open('look.json'))['charts'])
pdf, painted, masks = open('print.pdf', 'rb').read(), 0, 0
for m in re.finditer(rb'<<((?:[^<>]|<<[^<>]*>>)*)>>\s*stream\r?\n', pdf):
    if b'/Image' in m[1] and b'/DeviceGray' in m[1] and b'/FlateDecode' in m[1]:
        n = int(re.search(rb'/Length (\d+)', m[1])[1])
        opacity = zlib.decompress(pdf[m.end():m.end() + n])
        masks += 1
        painted += any(opacity)
assert charts and painted >= charts, (charts, painted, masks)
END
  done
}

@test "report: names the runs of the figures, and a replay whose live bytes differ" {
  make_workload
  "$HEAPTAPE" replay -q --json --no-latency -r 1 a.htw >one.json
  python3 - <<'END'
import json
r = json.load(open('one.json'))
live = r['fidelity']['live']
r['threads'], r['memory_threads'], r['speed'] = 2, 'coupled', None
live['max_difference_bytes'] = 0
json.dump(r, open('same.json', 'w'))
live['max_difference_bytes'] = r['peak_live_bytes'] // 2
r['memory_threads'] = 'real'
json.dump(r, open('far.json', 'w'))
r['threads'] = 1
json.dump(r, open('single.json', 'w'))
END
  for name in same far single; do
    "$HEAPTAPE" report -q -f -o $name.html a.htw $name.json
  done
  browser
  node "$HEAPTAPE_SOURCE/tests/page/look.mjs" "$chromium" same.html far.html single.html >looks
  python3 - <<'END'
import json
same, far, single = (json.loads(line) for line in open('looks'))
has = lambda look: any(s.startswith('live, replayed on glibc') for c in look['series'] for s in c)
assert (has(same), has(far)) == (False, True), (same['series'], far['series'])
assert same['how'] == ['Memory is that of runs whose threads stay as close to each other as recorded, times and latencies are those of runs at full speed.'], same['how']
assert far['how'] == ['Memory and time are those of threads that run as fast as their dependencies allow.'], far['how']
assert single['how'] == [], single['how']
END
}

@test "report --pool: ratios with intervals from results of several files" {
  make_workload
  for i in 1 2; do
    for a in glibc glibc,MALLOC_ARENA_MAX=1; do
      "$HEAPTAPE" replay -q --json --no-latency -r 3 -a "$a" a.htw >"$a.$i.json"
    done
  done
  heaptape report --pool glibc.1.json glibc.2.json glibc,MALLOC_ARENA_MAX=1.{1,2}.json
  [ "$status" -eq 0 ]
  grep -Eq '^glibc +2 +6 .* 1$' <<<"$output"
  grep -Eq '^glibc,MALLOC_ARENA_MAX=1 +2 +6 .* (no difference|[0-9.]+ \[[0-9.]+, [0-9.]+\])$' <<<"$output"
  [ "$(awk 'length > 80' <<<"$output")" = "" ]
  has "$output" "The peak RSS of the whole process is not predicted:"$'\n'"the workload has no samples of the program's memory."
  [[ "$output" != *"rocess RSS"* ]]
  # Three runs have no interval. An allocator that is four times as fast has a ratio of 0.25.
  python3 - <<'END'
import json
for i in '1', '2':
    r = json.load(open(f'glibc.{i}.json'))
    r['allocator']['name'] = 'quick'
    for run in r['runs']:
        run['wall_ns'] /= 4
        run['peak_rss_bytes'] *= 3
    json.dump(r, open(f'quick.{i}.json', 'w'))
# The program has 4 MiB outside its heap, as in the result on its own allocator.
r = json.load(open('glibc.1.json'))
peak = r['peak_rss_bytes']
r.update(process_rss_missing_reason=None, outside_samples=[[0, 4 << 20], [r['events'], 4 << 20]])
for run in r['runs']:
    run.update(process_peak_rss_bytes=peak + (4 << 20), outside_rss_bytes=4 << 20)
json.dump(r, open('recorded.json', 'w'))
r = json.load(open('quick.1.json'))
for run in r['runs']:
    run.update(peak_rss_bytes=peak + (peak + (4 << 20)) // 2 - (r['library_bytes'] or 0))
json.dump(r, open('half-more.json', 'w'))
def other(name, change):
    r = json.load(open('glibc.2.json'))
    change(r)
    json.dump(r, open(name, 'w'))
other('machine.json', lambda r: r['machine'].update(cpu_model='Another'))
other('load.json', lambda r: r['machine'].update(load_at_start=99.5))
other('workload.json', lambda r: r.update(events=r['events'] + 1))
other('options.json', lambda r: r.update(speed=1))
other('build.json', lambda r: (r['allocator'].update(build_id='0123456789abcdef'), r['runs'].reverse()))
END
  heaptape report --pool glibc.1.json quick.1.json
  grep -Eq '^quick +1 +3 .* 0\.25$' <<<"$output"
  grep -Eq '^quick +1 +3 .* 3\.00$' <<<"$output"
  heaptape report --pool recorded.json half-more.json
  has "$output" "Process RSS: the replayed heap plus the memory outside it in the recording."
  grep -A 2 '^process RSS ' <<<"$output" | grep -Eq '^quick +1 +3 .* 1\.50$'
  heaptape report --pool glibc.1.json glibc.2.json quick.1.json quick.2.json
  grep -Eq '^quick +2 +6 .* 3\.00 \[[0-9.]+, [0-9.]+\]$' <<<"$output"
  heaptape report --pool glibc.1.json build.json
  grep -Eq '^glibc \(build 01234567\) +1 +3 ' <<<"$output"
  heaptape report --pool glibc.1.json load.json
  grep -Eq '^glibc +2 +6 ' <<<"$output"
  heaptape report --pool glibc.1.json machine.json
  fails_with 1 "machine.json: measured on another machine than glibc.1.json: 'cpu_model' differs"
  heaptape report --pool glibc.1.json workload.json
  fails_with 1 "workload.json: made from another workload than glibc.1.json: 'events' differs"
  heaptape report --pool glibc.1.json options.json
  fails_with 1 "options.json: replayed with other options than glibc.1.json: 'speed' differs"
  heaptape report --pool glibc.1.json glibc.2.json glibc.1.json
  fails_with 1 "glibc.1.json: repeats the runs on glibc of another file"
  heaptape report --pool a.htw glibc.1.json
  fails_with 1 "a.htw: is not the result of 'replay --json' or 'compare --json'"
  heaptape report --pool -o x.html glibc.1.json
  usage_fails "--pool cannot be combined with --output"
}

@test "report: the output is named after its file" {
  make_workload
  mkdir -p logs
  cp a.htw logs/b.htw
  heaptape report logs/b.htw
  expect "done" [ "$status" -eq 0 ]
  [ "$stderr" = "heaptape: wrote b.html" ]
  [ -s b.html ]
  heaptape report logs/b.htw
  fails_with 1 "b.html: exists; use -f to replace it"
}

@test "report: opened in the browser" {
  make_workload
  mkdir bin
  printf '#!/bin/sh\necho "$@" >opened\n' >bin/xdg-open
  chmod +x bin/xdg-open
  PATH=$PWD/bin:$PATH heaptape report -q --open a.htw
  expect "done" [ "$status" -eq 0 ]
  [ "$(cat opened)" = a.html ]
  # Without a browser, the report is still written.
  printf '#!/bin/sh\nexit 3\n' >bin/xdg-open
  PATH=$PWD/bin:$PATH heaptape report -f --open a.htw
  [ "$status" -eq 0 ]
  has "$stderr" "a.html cannot be opened: xdg-open failed"
  heaptape report --open -o - a.htw
  usage_fails "--open requires a file, not standard output"
}

@test "report: errors" {
  make_workload
  heaptape report -o a.html nowhere.htw
  fails_with 1 "nowhere.htw: No such file"
  echo '{"a": 1}' >a.json
  heaptape report -o a.html a.json
  fails_with 1 "a.json: is JSON, but was not printed by stat, replay or compare"
  echo '{"a": ' >a.json
  heaptape report -o a.html a.json
  fails_with 1 "a.json: truncated JSON at byte 7"
  echo '{"a": x}' >a.json
  heaptape report -o a.html a.json
  fails_with 1 "a.json: invalid JSON at byte 6"
  "$HEAPTAPE" stat --brief --json a.htw >a.json
  heaptape report -o a.html a.json
  fails_with 1 "a.json: was printed by 'stat --brief'"
  "$HEAPTAPE" replay --verify --json --runs 1 a.htw >a.json
  heaptape report -o a.html a.json
  fails_with 1 "a.json: is the result of 'replay --verify'"
  [ ! -e a.html ]
  : >a.html
  heaptape report -o a.html a.htw
  fails_with 1 "a.html: exists; use -f to replace it"
  heaptape report -f -o a.html a.htw
  [ "$status" -eq 0 ]
}

@test "report --diff" {
  make_workload
  "$HEAPTAPE_PROGRAMS/make_workload" b.htw kinds 2 3000 >/dev/null
  heaptape report --diff -o d.html a.htw b.htw
  expect "done" [ "$status" -eq 0 ]
  [ "${lines[0]}" = "a: a.htw" ]
  # Recording makes the program slower by an unknown amount, so durations are not compared.
  [ "$(grep -c "^duration" <<<"$output")" -eq 0 ]
  [[ "$output" =~ peak\ live\ +1[.,0-9]+\ .iB\ +[0-9.]+\ .iB ]]
  [ "$(data d.html "[r['a'] for r in d['diff'] if r['label'] == 'malloc']")" = "[$(
    "$HEAPTAPE" stat --json a.htw | python3 -c 'import json,sys; print(json.load(sys.stdin)["calls"]["malloc"]["count"])')]" ]
  "$HEAPTAPE" replay --json --runs 1 a.htw >a.json
  "$HEAPTAPE" replay --json --runs 1 b.htw >b.json
  heaptape report --diff a.json b.json
  expect "done" [ "$status" -eq 0 ]
  has "$output" "peak RSS"
  heaptape report --diff a.json b.htw
  fails_with 1 "a.json and b.htw cannot be compared"
  heaptape report --diff a.json
  usage_fails "--diff requires exactly two files"
  looks_right d.html
}

@test "compare -o: a page in a browser, with the numbers of compare --json" {
  make_workload
  : >a.html
  heaptape compare -q --runs 2 -a glibc -a glibc,MALLOC_ARENA_MAX=1 -o a.html a.htw
  fails_with 1 "a.html: exists"
  heaptape compare -q --json --runs 2 -a glibc -a "$HEAPTAPE_BUILD/src/replay/player/libheaptape-null.so" -f -o a.html a.htw
  expect "done" [ "$status" -eq 0 ]
  echo "$output" >a.json
  looks_right a.html a.json
}

# Sets chromium. The commands before it in a test run under the sanitizers, too; a page is the same
# without them, and Chromium takes three quarters of the CPU time of these tests.
browser() {
  [ -z "$HEAPTAPE_SANITIZED" ] || skip "the build without a sanitizer opens the page"
  command -v node >/dev/null || skip "no Node to open the page with"
  chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "no Chromium to open the page with"
}

# Records a program with a leak, a burst, a cache, and short-lived buffers in named threads into
# heap.ht, and makes its report.
with_heap() {
  skip_under_sanitizer
  once heap record_heap
}

# The recorder samples an idle program at least every 1.5 seconds. Records again if the recorder did
# not get a CPU while the program was idle at its end, with 10,000 leaked blocks: a map of a heap that
# changes meanwhile is inexact.
record_heap() {
  local i
  cat >heap.c <<'END'
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
void *kept[20000];
__attribute__((noinline)) void *leak(int i) { return kept[i % 20000] = malloc(40); }
__attribute__((noinline)) char *cache(int i) { static char *all[64]; free(all[i % 64]); return all[i % 64] = malloc(900 + i % 200); }
__attribute__((noinline)) void buffer(int i) { char *b = malloc(20 + i % 3000); b[0] = 1; free(strdup("a copy")); free(b); }
__attribute__((noinline)) void burst(void) { void *b[300]; for (int i = 0; i < 300; i++) b[i] = malloc(5000); for (int i = 0; i < 300; i++) free(b[i]); }
__attribute__((noinline)) void work(int n) { for (int i = 0; i < n; i++) { leak(i); cache(i); buffer(i); if (i == n / 2) burst(); } }
static void *helper(void *unused) { pthread_setname_np(pthread_self(), "helper"); work(2000); usleep(2500000); return unused; }
int main(void) { pthread_t t; work(8000); pthread_create(&t, NULL, helper, NULL); pthread_join(t, NULL); return 0; }
END
  gcc -g -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls -o heap heap.c -lpthread
  for i in 1 2 3 4 5; do
    "$HEAPTAPE" record -q -f --stacks -o heap.ht -- ./heap
    "$HEAPTAPE" stat --rss --at end --json heap.ht >rss.json
    jq -e '.page_maps > 0 and .blocks >= 10000' rss.json >/dev/null && break
  done
  "$HEAPTAPE" report -q heap.ht
}

@test "report, used: the figures of call sites add up" {
  with_heap
  "$HEAPTAPE" stat --by site --format json heap.ht >by.json
  python3 - <<'END'
import json, re
d = json.loads(re.search(r'id="data">(.*?)</script>', open('heap.html', encoding='utf-8').read(), re.S).group(1))
w = d['workloads'][0]
p, stat = w['profile'], w['stat']
by = {s['site']: s for s in json.load(open('by.json'))['sites']}
assert len(p['sites']) == len(by)
for i, site in enumerate(p['sites']):
    s = by[site]
    for key in 'allocs', 'allocated_bytes', 'live_at_peak_bytes', 'live_at_end_bytes':
        assert p[key][i] == s[key], key
    assert sum(p['flow']['live_bytes'][i]) == s['live_at_end_bytes']
    assert sum(p['flow']['allocated_bytes'][i]) == s['allocated_bytes']
    assert sum(p['flow']['allocs'][i]) == s['allocs']
    parts = [x for x in p['parts'] if x[0] == i]
    column = lambda c: sum(x[c] for x in parts)
    assert (column(3), column(4), column(6), column(8)) == (s['allocs'], s['allocated_bytes'], s['live_at_peak_bytes'], s['live_at_end_bytes'])
    # Allocated bytes are live at the end or were freed within one of the lifetimes.
    assert column(3) == column(7) + sum(column(9 + 2 * k) for k in range(len(p['lifetime_limits']) + 1))
    stack, frames = p['stacks'][i], []
    while stack >= 0:
        frames.append(p['frames'][p['stack_frames'][stack]]['function'])
        stack = p['stack_prefixes'][stack]
    assert frames == [f['function'] for f in s['frames']], frames
# The growth is compared with the findings of stat. With --by site, the eighths of the run begin at
# the first event; here, they begin at the first event with a stack.
assert stat['call_sites']['by_growth']
for s in stat['call_sites']['by_growth']:
    assert p['steady_growth_bytes'][p['sites'].index(s['site'])] == s['steady_growth_bytes'], s
assert [t['name'] for t in stat['by_thread']] == ['heap', 'helper']
assert all(t['tid'] for t in stat['by_thread'])
leak = next(i for i, s in enumerate(p['stacks']) if p['frames'][p['stack_frames'][s]]['function'] == 'leak' and p['allocs'][i] == 8000)
live = p['flow']['live_bytes'][leak]
rows = [r for key in ('live_bytes', 'allocated_bytes', 'allocs') for r in p['flow'][key]]
assert max(map(len, rows)) <= len(p['flow']['events']) and all(not r or r[-1] for r in rows), rows
assert live[-1] >= 0 and sum(v > 0 for v in live) > len(live) / 2, live
END
}

# map_of FILE: the report's heap by address as JSON, or null.
map_of() {
  "$HEAPTAPE" report -q -f -o map.html "$1"
  python3 -c 'import json, re
d = json.loads(re.search(r"id=\"data\">(.*?)</script>", open("map.html", encoding="utf-8").read(), re.S).group(1))
print(json.dumps(d["workloads"][0].get("address_map")))'
}

@test "report: the heap by address equals stat --rss" {
  with_heap
  map_of heap.ht >map.json
  "$HEAPTAPE" stat --json --rss --at end heap.ht >rss.json
  python3 - <<'END'
import json, os
m, r = json.load(open("map.json")), json.load(open("rss.json"))
assert 1 <= len(m["moments"]) <= 24 and 1 <= len(m["addresses"]) <= 64
assert m["moments"][-1]["rss_bytes"] == r["sampled"]["rss_bytes"]
assert m["moments"] == sorted(m["moments"], key=lambda x: x["time_ns"])
n = len(m["moments"])
for key in ("resident_bytes", "occupied_bytes", "stranded_bytes", "pinning"):
    assert [len(row) for row in m[key]] == [n] * len(m["addresses"]), key
for resident, occupied in zip(m["resident_bytes"], m["occupied_bytes"]):
    assert all(0 <= o <= x <= m["row_bytes"] for o, x in zip(occupied, resident))
end = lambda key: sum(row[-1] for row in m[key])
# Including the block headers of the allocator.
live = r["live_bytes"] + r["rounding_bytes"]
assert live <= end("occupied_bytes") <= live + r["allocator_bytes"], (end("occupied_bytes"), r)
assert end("stranded_bytes") == r["pinned"]["stranded_bytes"], (end("stranded_bytes"), r["pinned"])
named = {s["site"]: s["function"] for s in m["sites"]}
first = max((p for row in m["pinning"] for p in row[-1]), key=lambda p: p[1])
assert "heap.c" in named[first[0]], named
assert os.path.getsize("map.json") < 200000
END
}

@test "report: a block in two ranges of addresses strands each page once" {
  # The first block ends in the page of the second block, which is the first page of the next range.
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <<'END'
allocator /lib/x86_64-linux-gnu/libc.so.6
process 100 prog
0 1000 malloc size=100 result=0x10ffd0
0 1100 malloc size=50 result=0x110810
pages 2000
mapping 0x100000 32 heap 0+32
end
END
  map_of a.ht >map.json
  "$HEAPTAPE" stat --json --rss --at end a.ht >rss.json
  [ "$(jq '.addresses | length' map.json)" -eq 2 ]
  [ "$(jq '[.stranded_bytes[][-1]] | add' map.json)" -eq "$(jq .pinned.stranded_bytes rss.json)" ]
}

@test "report: no heap by address without maps of pages" {
  with_heap
  "$HEAPTAPE" record -q -f --no-pages -o none.ht -- ./heap
  [ "$(map_of none.ht)" = null ]
  "$HEAPTAPE" convert -q -o heap.htw heap.ht
  [ "$(map_of heap.htw)" = null ]
  browser
  node "$HEAPTAPE_SOURCE/tests/page/look.mjs" "$chromium" map.html >look.json
  grep -q '"addresses":\["There is no map of the heap by address: the file has no maps of the pages' look.json
}

@test "report, used: clicked, brushed, searched, sorted, and zoomed by keyboard" {
  browser
  with_heap
  for size in 1024 2048; do
    {
      echo '{"kind":"heaptape.module","pid":7,"tid":7,"time_ns":1,"ptr":"0x10000","size":4096,"offset":0,"text":"00 /home/me/app"}'
      echo '{"kind":"heaptape.stack","pid":7,"tid":7,"time_ns":1,"site":1,"frames":["0x10020","0x10010"]}'
      echo '{"kind":"heaptape.stack","pid":7,"tid":7,"time_ns":1,"site":2,"frames":["0x10030","0x10010"]}'
      echo '{"kind":"malloc","pid":7,"tid":7,"time_ns":2,"size":'$size',"result":"0xa000","site":1}'
      [ $size -eq 2048 ] || echo '{"kind":"malloc","pid":7,"tid":7,"time_ns":3,"size":76,"result":"0xb000","site":2}'
    } | "$HEAPTAPE" import -q --format json -o $size.htw -
  done
  "$HEAPTAPE" report -q --diff -o compared.html 1024.htw 2048.htw >/dev/null
  [ "$(stat -c %s heap.html)" -le 1048576 ]
  run node "$HEAPTAPE_SOURCE/tests/page/use.mjs" "$chromium" heap.html --compared compared.html
  expect "used" [ "$status" -eq 0 ]
  [[ "$output" =~ [5-9][0-9]\ expectations,\ 0\ not\ met ]]
}

@test "report, used: no serious fault of accessibility" {
  browser
  axe=${HEAPTAPE_AXE:-$(npm root -g 2>/dev/null)/axe-core/axe.min.js}
  [ -f "$axe" ] || skip "no axe-core (npm install -g axe-core, or set HEAPTAPE_AXE to its axe.min.js)"
  with_heap
  run node "$HEAPTAPE_SOURCE/tests/page/use.mjs" "$chromium" heap.html --axe "$axe"
  expect "accessible" [ "$status" -eq 0 ]
}

@test "report: the allocators that a program called are not results of a comparison" {
  make_workload
  "$HEAPTAPE" stat --json a.htw | jq -c '. + {allocators: [{name: "malloc", calls: 1}, {name: "mimalloc", calls: 2}]}' >a.json
  "$HEAPTAPE" report -q -f -o a.html a.json
  grep -q '"workloads":\[{"name":"a.json"' a.html
  grep -q '"results":\[\]' a.html
}
