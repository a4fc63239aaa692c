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

# The page as a browser shows it; skipped without one.
looks_right() {
  run "$HEAPTAPE_SOURCE/tests/page/page_check.py" "$@"
  [ "$status" -ne 77 ] || skip "$output"
  expect "a page as it should be" [ "$status" -eq 0 ]
}

@test "report: a page with stat's numbers" {
  make_workload
  heaptape report -o a.html a.htw
  expect "done" [ "$status" -eq 0 ]
  [ "$(stat -c %s a.html)" -lt 2097152 ]
  "$HEAPTAPE" stat --json a.htw >a.json
  [ "$(data a.html "d['workloads'][0]['stat'] == json.load(open('a.json'))")" = True ]
  [ "$(data a.html "d['mode'], d['workloads'][0]['name'], d['results']")" = "report a.htw []" ]
  # From JSON it is the same page.
  heaptape report -o b.html a.json
  [ "$(data b.html "d['workloads'][0]['stat'] == json.load(open('a.json'))")" = True ]
  heaptape report -o - a.htw
  [ "${output:0:15}" = "<!DOCTYPE html>" ]
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

@test "report: names in a file stay text" {
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

@test "report: long series are made short and keep their extremes" {
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

@test "report: what cannot be shown" {
  make_workload
  heaptape report a.htw
  usage_fails "say with -o where the page goes"
  heaptape report -o a.html nowhere.htw
  fails_with 1 "nowhere.htw: No such file"
  echo '{"a": 1}' >a.json
  heaptape report -o a.html a.json
  fails_with 1 "a.json: is JSON, but not of stat, replay or compare"
  echo '{"a": ' >a.json
  heaptape report -o a.html a.json
  fails_with 1 "a.json: JSON that is cut off, at byte 7"
  echo '{"a": x}' >a.json
  heaptape report -o a.html a.json
  fails_with 1 "a.json: invalid JSON" "at byte 6"
  "$HEAPTAPE" stat --brief --json a.htw >a.json
  heaptape report -o a.html a.json
  fails_with 1 "a.json: is of stat --brief"
  "$HEAPTAPE" replay --verify --json --runs 1 a.htw >a.json
  heaptape report -o a.html a.json
  fails_with 1 "a.json: is of a replay that checked"
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
  [[ "$output" =~ peak\ live\ +1[.,0-9]+\ .iB\ +[0-9.]+\ .iB ]]
  [ "$(data d.html "[r['a'] for r in d['diff'] if r['label'] == 'malloc']")" = "[$(
    "$HEAPTAPE" stat --json a.htw | python3 -c 'import json,sys; print(float(json.load(sys.stdin)["calls"]["malloc"]["count"]))')]" ]
  "$HEAPTAPE" replay --json --runs 1 a.htw >a.json
  "$HEAPTAPE" replay --json --runs 1 b.htw >b.json
  heaptape report --diff a.json b.json
  expect "done" [ "$status" -eq 0 ]
  has "$output" "peak RSS"
  heaptape report --diff a.json b.htw
  fails_with 1 "a.json and b.htw are not of one kind"
  heaptape report --diff a.json
  usage_fails "--diff compares two files"
  looks_right d.html
}

@test "compare -o: a page in a browser, with the numbers of compare --json" {
  make_workload
  : >a.html
  heaptape compare -q --runs 2 -a glibc -a glibc,MALLOC_ARENA_MAX=1 -o a.html a.htw
  fails_with 1 "a.html: exists"
  heaptape compare -q --json --runs 2 -a glibc -a "$HEAPTAPE_BUILD/src/replay/libheaptape-null.so" -f -o a.html a.htw
  expect "done" [ "$status" -eq 0 ]
  echo "$output" >a.json
  looks_right a.html a.json
}
