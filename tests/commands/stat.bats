load ../helper

make_trace() {
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <<'END'
process 100 prog -x
0 1000 malloc size=1000 result=0x1000
0 1500 calloc size=10 count=20 result=0x2000
0 2000 realloc.begin ptr=0x1000
0 2100 realloc size=3000 result=0x1000
1 3000 free ptr=0x1000
0 4000 malloc size=7 result=0 error=12
0 4100 free
process 200 other
0 5000 malloc size=50 result=0x1000
end
END
}

# json FILE PATH: a value of stat --json, by a Python expression on s.
json() {
  "$HEAPTAPE" stat --json "$1" | python3 -c "import json,sys; s=json.load(sys.stdin); print($2)"
}

@test "stat --json: a trace" {
  make_trace
  heaptape stat --json a.ht
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  [ "$(json a.ht "s['schema_version'], s['kind'], s['events'], s['threads']")" = "2 trace 7 3" ]
  [ "$(json a.ht "sorted(s['by_kind'].items())")" = "[('calloc', 1), ('free', 2), ('malloc', 3), ('realloc', 1)]" ]
  [ "$(json a.ht "[(p['pid'], p['argv'], p['threads'], p['events'], p['lost_records']) for p in s['processes']]")" = \
    "[(100, ['prog', '-x'], 2, 6, 0), (200, ['other'], 1, 1, 0)]" ]
  [ "$(json a.ht "s['duration_ns'], s['requested_bytes'], s['peak_live_bytes']")" = "5000 4250 3250" ]
  [ "$(json a.ht "s['live_at_end_bytes'], s['live_at_end_blocks'], s['remote_frees'], s['unmatched_frees']")" = \
    "250 2 1 0" ]
  [ "$(json a.ht "s['order']")" = "{'repaired': 0, 'ambiguous': 0}" ]
  [ "$(json a.ht "s['file_bytes']")" = "$(stat -c %s a.ht)" ]
  [ "$(json a.ht "abs(s['bytes_per_event'] - s['file_bytes'] / s['events']) < 1e-6")" = True ]
}

@test "stat --json: a workload has the figures of its process" {
  make_trace
  heaptape convert a.ht
  [ "$(json a.htw "s['kind'], s['events'], s['threads'], [p['pid'] for p in s['processes']]")" = \
    "workload 6 2 [100]" ]
  [ "$(json a.htw "s['requested_bytes'], s['peak_live_bytes'], s['live_at_end_bytes'], s['remote_frees']")" = \
    "4200 3200 200 1" ]
  [ "$(json a.htw "s['duration_ns']")" = 3100 ]
  # Without the index, from a pipe.
  [ "$(cat a.htw | "$HEAPTAPE" stat --json -)" = "$("$HEAPTAPE" stat --json a.htw)" ]
}

@test "stat: text" {
  make_trace
  heaptape stat -v a.ht
  [ "$status" -eq 0 ]
  has "$output" "a.ht: trace"
  has "$output" "prog -x"
  [[ "$output" =~ malloc\ +3\ +42.9\ % ]]
}

@test "stat: a truncated file" {
  make_trace
  heaptape convert a.ht
  head -c -20 a.htw > b.htw
  heaptape stat --json b.htw
  [ "$status" -eq 0 ]
  has "$stderr" "b.htw: cut off"
  has "$output" '"cut_off": true'
  has "$output" '"events": 6'
  head -c -5 a.ht > b.ht
  heaptape stat -v b.ht
  [ "$status" -eq 0 ]
  has "$stderr" "b.ht: cut off"
}

@test "stat: files of other programs" {
  heaptape stat nowhere.ht
  fails_with 1 "nowhere.ht: No such file"
  echo "some text that is no trace, and long enough for a header" > text
  heaptape stat text
  fails_with 1 "text: is not a heaptape trace or workload"
  : > empty
  heaptape stat empty
  fails_with 1 "empty: is empty"
  heaptape stat .
  fails_with 1 ".: is a directory"
  heaptape stat
  usage_fails ""
}

# agrees WORKLOAD [TRACE]: stat's numbers equal the counts of a Python script over the dump.
agrees() {
  run "$HEAPTAPE_SOURCE/tests/stat_check.py" "$HEAPTAPE" "$@"
  expect "no difference" [ "$status" -eq 0 ]
  expect "counted" [ "${output%, 0 differences}" != "$output" ]
}

@test "stat: numbers equal counts over the dump" {
  local kind
  for kind in churn orphans kinds misfit; do
    "$HEAPTAPE_PROGRAMS/make_workload" $kind.htw $kind 4 3000 >/dev/null
    agrees $kind.htw
  done
}

@test "stat: numbers of recorded programs equal counts over their dumps" {
  skip_under_sanitizer
  command -v perl >/dev/null || skip "no perl"
  "$HEAPTAPE" record -q -o threads.ht -- "$HEAPTAPE_PROGRAMS/threads" 300 >/dev/null
  "$HEAPTAPE" convert -q threads.ht
  agrees threads.htw
  "$HEAPTAPE" record -q -o perl.ht -- \
    perl -e 'my $s = ""; for (1 .. 2000) { push @a, "x" x ($_ % 97); $s .= $a[$_ / 2]; $h{$_} = $s if $_ % 50 == 0 }'
  "$HEAPTAPE" convert -q perl.ht
  agrees perl.htw perl.ht
}

@test "stat: without stamps there is no time" {
  make_trace
  "$HEAPTAPE" convert -q --no-timestamps a.ht
  [ "$(json a.htw "sorted(s['timeline']), s['peak']['ns']")" = "['by_event', 'pid'] None" ]
}

@test "stat: reallocs that moved, and sums over a trace's processes" {
  make_trace
  [ "$(json a.ht "s['realloc']['grown_in_place'], s['realloc']['growth_factors'][5]['count']")" = \
    "{'count': 1, 'bytes': 1000} 1" ]
  [ "$(json a.ht "[s['peak'][k] for k in ('pid', 'event', 'ns', 'bytes', 'blocks', 'peak_blocks', 'rss_bytes', \
    'recording_rss_bytes')], s['never_freed']['count'], s['timeline']['pid']")" = \
    "[100, 2, 1100, 3200, 2, 2, None, None] 2 100" ]
}

@test "stat: the figures on the screen are those of the process in the title" {
  make_trace
  heaptape stat a.ht
  has "$output" "trace of process 100 (prog -x), one of 2 processes"
  grep -qE '^requested +4\.1 KiB$' <<<"$output"
  grep -qE '^events +6$' <<<"$output"
  grep -qE '^threads +2$' <<<"$output"
  heaptape stat --brief a.ht
  grep -qE '^events +7$' <<<"$output"
}

@test "stat --brief" {
  make_trace
  heaptape convert -q a.ht
  heaptape stat --brief --json a.htw
  [ "$status" -eq 0 ]
  has "$output" '"events": 6'
  [ "${output#*timeline}" = "$output" ]
}

widest() {
  python3 -c "import re,sys; print(max(len(re.sub('\x1b\\[[0-9;]*m', '', line.rstrip('\n'))) for line in open('$1', encoding='utf-8')))"
}

with_stacks() {
  cat >long.c <<'END'
#include <stdlib.h>
void *kept;
__attribute__((noinline)) void *a_function_with_a_name_that_is_so_long_that_it_does_not_fit_beside_the_figures(void) { return malloc(100); }
int main(void) { kept = a_function_with_a_name_that_is_so_long_that_it_does_not_fit_beside_the_figures(); return 0; }
END
  gcc -g -O1 -fno-optimize-sibling-calls -o long long.c
  "$HEAPTAPE" record -q --stacks -o long.ht -- ./long
}

@test "stat on a terminal: bars of ASCII in locales without other characters" {
  "$HEAPTAPE_PROGRAMS/make_workload" a.htw kinds 1 3000 >/dev/null
  LC_ALL=C "$HEAPTAPE" stat -v a.htw >ascii
  LC_ALL=C.UTF-8 "$HEAPTAPE" stat -v a.htw >utf8
  grep -q '####' ascii
  run env LC_ALL=C grep -n "$(printf '[\200-\377]')" ascii
  expect "only ASCII" [ "$status" -eq 1 ]
  grep -q '████' utf8
}

@test "stat on a terminal: no line is wider than the terminal" {
  with_stacks
  "$HEAPTAPE" stat --by site long.ht >whole
  COLUMNS=80 "$HEAPTAPE" stat --by site long.ht >narrow
  [ "$(widest whole)" -gt 100 ]
  [ "$(widest narrow)" -le 80 ]
  grep -q "^    a_function_with_a_name_that_is_so_long" narrow
  COLUMNS=80 "$HEAPTAPE" stat -v long.ht >narrow
  "$HEAPTAPE" stat -v long.ht >whole
  [ "$(widest narrow)" -le 80 ]
  # No text is lost.
  diff <(tr -d ' \n' <narrow) <(tr -d ' \n' <whole)
  COLUMNS=400 "$HEAPTAPE" stat -v long.ht | cmp - whole
  COLUMNS=40 "$HEAPTAPE" stat --color=always long.ht >narrow
  [ "$(widest narrow)" -le 40 ]
  # The width comes from the terminal.
  local columns
  for columns in 80 200; do
    on_terminal $columns env -u COLUMNS TERM=xterm "$HEAPTAPE" stat --by site long.ht | sed 's/.*\r//; s/\x1b\[K//g' >narrow$columns
    [ "$(widest narrow$columns)" -le $columns ]
  done
  [ "$(widest narrow200)" -gt 80 ]
}

@test "stat on a terminal: stat of several files" {
  "$HEAPTAPE_PROGRAMS/make_workload" a.htw kinds 1 3000 >/dev/null
  "$HEAPTAPE_PROGRAMS/make_workload" b.htw kinds 2 2000 >/dev/null
  heaptape stat a.htw b.htw
  expect "done" [ "$status" -eq 0 ]
  [ "$output" = "$("$HEAPTAPE" stat a.htw; echo; "$HEAPTAPE" stat b.htw)" ]
  "$HEAPTAPE" stat --json a.htw b.htw | jq -s -e 'length == 2 and (map(.events) | .[0] > .[1])'
  heaptape stat a.htw nowhere.htw
  fails_with 1 "nowhere.htw: No such file"
  heaptape stat --by site --format pprof a.htw b.htw
  usage_fails "a profile accepts only one FILE"
}

@test "stat: sizes up to 2^64 have a class, and the JSON matches its schema" {
  "$HEAPTAPE" stat --json "$HEAPTAPE_SOURCE/tests/golden/trace-1.ht" >stat.json
  [ "$(jq -c '[.size_classes[].classes[].max_bytes == 0] | any' stat.json)" = false ]
  [ "$(jq -c '[.size_classes[].classes[-1].max_bytes]' stat.json)" = "[null,null]" ]
  "$HEAPTAPE_SOURCE/tools/check-json" stat stat.json || [ $? -eq 77 ]
}

@test "stat: a call path loses its outermost functions, or the end of its only one, to fit in a line" {
  local name
  for name in an-application-with-a-long-name another-application-whose-name-is-too-long-for-one-line; do
    cat >paths.json <<END
{"kind":"heaptape.module","pid":7,"tid":7,"time_ns":1,"ptr":"0x10000","size":4096,"offset":0,"text":"00 /opt/$name"}
{"kind":"heaptape.stack","pid":7,"tid":7,"time_ns":1,"site":1,"frames":["0x10010","0x10020","0x10030"]}
{"kind":"malloc","pid":7,"tid":7,"time_ns":2,"size":5000,"site":1,"result":"0xa0000"}
END
    "$HEAPTAPE" import -q -f --format json -o paths.htw paths.json
    "$HEAPTAPE" stat paths.htw | sed -n 's/^ *4.9 KiB  *4.9 KiB  //p'
  done >paths
  [ "$(cat paths)" = "an-application-with-a-long-name+0x10
another-application-whose-name-is-too-long-for-one-l" ]
}
