load ../helper

# Writes a program whose parser allocates N blocks of 64 bytes and keeps the last tenth of them. The
# source is shifted by LINES lines.
version() {
  local n=$1 lines=$2 name=$3
  skip_under_sanitizer
  command -v gcc >/dev/null || skip "no gcc"
  {
    for ((i = 0; i < lines; i++)); do echo "// changed"; done
    cat <<END
#include <stdlib.h>
__attribute__((noinline)) static void *parse_word(void) { return malloc(64); }
__attribute__((noinline)) static void *other(void) { return malloc(1000); }
int main(void)
{
    void *volatile kept;
    for (int i = 0; i < $n; i++) {
        kept = parse_word();
        if (i % 10)
            free(kept);
    }
    for (int i = 0; i < 50; i++)
        kept = other();
    return kept == NULL;
}
END
  } >program.c
  gcc -g -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls -o "$name" program.c
  "$HEAPTAPE" record -q --stacks=8 -o "$name.ht" -- "./$name"
}

# Checks the JSON against its schema.
json_of() {
  "$HEAPTAPE" diff --json "$@" >out.json
  status=$?
  "$HEAPTAPE_SOURCE/tools/check-json" diff out.json || [ $? -eq 77 ]
  return "$status"
}

@test "diff: call sites of two versions are matched by function and line, not by address" {
  version 1000 0 a
  version 1050 3 b
  json_of a.ht b.ht
  [ "$(jq -c '[.sites[] | [.function, .file, .a.line, .b.line, .a.allocs, .b.allocs, .b.allocated_bytes - .a.allocated_bytes, .b.live_at_end_bytes - .a.live_at_end_bytes]]' out.json)" = \
    '[["parse_word","program.c",2,5,1000,1050,3200,320]]' ]
  [ "$(jq -c '[.totals[] | select(.metric == "calls") | .b - .a]' out.json)" = '[50]' ]
  heaptape diff a.ht b.ht
  [ "$status" -eq 0 ]
  [[ "$output" =~ \+320\ B\ +\+320\ B\ +\+3\.1\ KiB\ +\+50\ \ parse_word\ \(program.c:5\) ]]
  [ "$(grep -c other <<<"$output")" -eq 0 ]
  heaptape report --diff a.ht b.ht
  has "$output" "parse_word (program.c:5)"
  # Two recordings of one program do not differ.
  "$HEAPTAPE" record -q --stacks=8 -o a2.ht -- ./a
  heaptape diff a.ht a2.ht
  [ "$(grep -c "call site" <<<"$output")" -eq 0 ]
}

@test "diff: an address without a name is relative to its object, wherever that was loaded" {
  skip_under_sanitizer
  command -v gcc >/dev/null || skip "no gcc"
  cat >lib.c <<'END'
#include <stdlib.h>
__attribute__((noinline)) static void *hidden(void) { void *volatile p = malloc(64); return p; }
void *(*const get)(void) = hidden;
END
  cat >main.c <<'END'
extern void *(*const get)(void);
int main(int argc, char **argv)
{
    (void)argv;
    for (int i = 0; i < 100 * argc; i++)
        get();
    return 0;
}
END
  gcc -O1 -fPIC -shared -fno-optimize-sibling-calls -s -o libhidden.so lib.c
  gcc -O1 -s -o main main.c -L. -lhidden -Wl,-rpath,"$PWD"
  local run
  for run in a b c; do
    "$HEAPTAPE" record -q --stacks -o $run.ht -- ./main $([ $run != c ] || echo more)
  done
  heaptape stat --by site a.ht
  has "$output" " libhidden.so+0x"
  [ "$(grep -c 'libhidden.so+0x[0-9a-f]* (' <<<"$output")" -eq 0 ]
  heaptape diff a.ht b.ht
  [ "$(grep -c "call site" <<<"$output")" -eq 0 ]
  heaptape diff a.ht c.ht
  [[ "$output" =~ \+6\.2\ KiB\ +\+100\ \ libhidden\.so\+0x[0-9a-f]+ ]]
  [ "$(grep -c "only in" <<<"$output")" -eq 0 ]
}

@test "diff --fail-on: always fails on 5 % more allocations, never on the same program" {
  version 2000 0 a
  version 2100 1 b
  # HEAPTAPE_TEST_TIMES=100 repeats it more often. bats's `run` uses the name i.
  local round
  for ((round = 0; round < ${HEAPTAPE_TEST_TIMES:-3}; round++)); do
    "$HEAPTAPE" record -q --stacks=8 -f -o a1.ht -- ./a
    "$HEAPTAPE" record -q --stacks=8 -f -o b1.ht -- ./b
    heaptape diff --fail-on 'calls>+2%' a.ht b1.ht
    [ "$status" -eq 1 ]
    heaptape diff --fail-on 'calls>+2%' --fail-on 'peak_live>+0%' --fail-on 'site:parse.*:calls>+0' a.ht a1.ht
    expect "unchanged" [ "$status" -eq 0 ]
  done
}

@test "diff --fail-on: totals and sites, shares and numbers" {
  version 1000 0 a
  version 1100 2 b
  # ok LIMIT, fails LIMIT: check the exit status of diff.
  ok() { "$HEAPTAPE" diff --fail-on "$1" a.ht b.ht >out; }
  fails() {
    local rc=0
    "$HEAPTAPE" diff --fail-on "$1" a.ht b.ht >out || rc=$?
    [ "$rc" -eq 1 ]
    grep -F "FAILED  $1: " out
  }
  fails 'calls>+99'
  ok 'calls>+100'
  fails 'calls>+9%'
  ok 'calls>+10%'
  fails 'bytes>+6KiB'
  ok 'bytes>+6400B'
  fails 'site:parse.*:bytes>+6KiB'
  fails 'site:parse_word:calls>+9.9%'
  ok 'site:parse_word:calls>+10%'
  ok 'site:other:calls>+0'
  ok 'site:arse:calls>+0'
  fails 'site:parse_word|other:calls>1149'
  ok 'site:parse_word|other:calls>1150'
  fails 'end_live>50KiB'
  ok 'end_live>1MiB'
  grep -E '^ok +end_live>1MiB: ' out
  heaptape diff --fail-on 'calls>+9%' --fail-on 'calls>+10%' --fail-on 'peak_live>+0.01%' --junit j.xml --markdown m.md a.ht b.ht
  [ "$status" -eq 1 ]
  python3 - <<'END'
import xml.etree.ElementTree as t
suite = t.parse("j.xml").getroot()
cases = [(c.get("name"), c.find("failure") is not None) for c in suite.iter("testcase")]
assert (suite.get("tests"), suite.get("failures")) == ("3", "2"), suite.attrib
assert cases == [("calls>+9%", True), ("calls>+10%", False), ("peak_live>+0.01%", True)], cases
assert "+100" in suite.find("testcase/failure").get("message")
END
  grep -F '| calls>+9% | ' m.md | grep -F '**failed**'
  grep -F '| calls>+10% | ' m.md | grep -F '| ok |'
  json_of --fail-on 'calls>+9%' a.ht b.ht && return 1
  [ "$(jq -c '.failed, [.limits[] | [.limit, .b - .a, .failed]]' out.json | tr -d '\n')" = 'true[["calls>+9%",100,true]]' ]
}

@test "diff: errors" {
  "$HEAPTAPE_PROGRAMS/make_workload" a.htw churn 1 100 >/dev/null
  for limit in calls 'calls>' 'calls>2%' 'calls>+1KiB' 'most>+1' 'calls>+x' 'site:calls>+1' 'calls>+1%x'; do
    heaptape diff --fail-on "$limit" a.htw a.htw
    usage_fails "--fail-on $limit: expected METRIC>LIMIT"
  done
  heaptape diff --fail-on 'site:(:calls>+1' a.htw a.htw
  usage_fails "--fail-on site:(:calls>+1: "
  "$HEAPTAPE_PROGRAMS/make_trace" b.ht <<<$'process 100 prog\n0 1000 malloc size=1000 result=0x1000\nend'
  heaptape diff --fail-on 'site:a:calls>+1' b.ht b.ht
  fails_with 1 "b.ht: --fail-on site:a:calls>+1 needs call sites (use 'heaptape record --stacks')"
  heaptape diff a.htw nowhere.htw
  fails_with 1 "nowhere.htw: No such file"
  heaptape diff a.htw
  [ "$status" -eq 2 ]
  heaptape diff --fail-on 'calls>+0' --junit nowhere/j.xml a.htw a.htw
  fails_with 1 "nowhere/j.xml: No such file"
}
