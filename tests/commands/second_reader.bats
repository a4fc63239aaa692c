load ../helper

# Lines with equal stamps may come in any order: sort them, and keep the others.
sort_ties() {
  python3 -c '
import itertools, re, sys
for _, ties in itertools.groupby(sys.stdin, lambda line: re.findall("\"time_ns\":([0-9]+)", line)):
    sys.stdout.writelines(sorted(ties))'
}

needs_tools() {
  command -v python3 >/dev/null || skip "no python3"
  command -v zstd >/dev/null || skip "no zstd"
}

# agree FILE [FILTER]: dump and the second reader print the same lines, at least one.
agree() {
  "$HEAPTAPE" dump --format json "$1" >lines.dump
  python3 "$HEAPTAPE_SOURCE/tests/second_reader.py" "$1" >lines.second
  "${2:-cat}" <lines.dump >want
  "${2:-cat}" <lines.second >got
  [ -s want ]
  cmp want got || { diff want got | head -20; return 1; }
}

# agree_on COMMAND...: records the command with each codec and checks the traces. Also checks the
# workload of the last trace, with and without stamps.
agree_on() {
  local codec
  for codec in none lz4 zstd; do
    "$HEAPTAPE" record -q -f -z "$codec" -o t.ht -- "$@" >told
    # A record written late is printed late by dump.
    agree t.ht sort
  done
  agree_on_workloads
}

agree_on_workloads() {
  "$HEAPTAPE" convert -q -f -o s.htw t.ht
  agree s.htw sort_ties
  "$HEAPTAPE" convert -q -f --no-timestamps -o n.htw t.ht
  agree n.htw
}

@test "second reader: the golden traces" {
  needs_tools
  local golden
  for golden in trace-1 trace-2; do
    # The rounds repeat their stamps, so the trace is not in order of stamps.
    agree "$HEAPTAPE_SOURCE/tests/golden/$golden.ht" sort
    [ "$(wc -l <want)" -eq 186 ]
  done
}

@test "second reader: golden traces with call sites" {
  needs_tools
  local golden
  for golden in stacks-1 stacks-2 stacks-3; do
    agree "$HEAPTAPE_SOURCE/tests/golden/$golden.ht" sort
    [ "$(grep -c '"site":' want)" -ge 6 ]
  done
}

@test "second reader: the golden workload" {
  needs_tools
  # Threads, dependencies, preexisting blocks, call sites. This version of the format must stay
  # readable.
  agree "$HEAPTAPE_SOURCE/tests/golden/workload-1.htw" sort_ties
  [ "$(wc -l <want)" -eq 5263 ]
  [ "$(jq -s '[.[] | select(.depends_on)] | length' want)" -eq 403 ]
  [ "$("$HEAPTAPE" stat --by site --format json "$HEAPTAPE_SOURCE/tests/golden/workload-1.htw" | jq '.sites | length')" -eq 9 ]
}

@test "second reader: notes" {
  needs_tools
  seq 3000 | awk 'BEGIN { print "process 100 prog" }
    { print "0", $1 * 1000, "malloc size=" $1, "result=" 4096 + 16 * $1, $1 % 3 ? "usable=" $1 * $1 : "" }
    END { print "end" }' | "$HEAPTAPE_PROGRAMS/make_trace" t.ht
  agree t.ht
  [ "$(grep -c '"usable":' want)" -eq 2000 ]
}

@test "second reader: a process tree" {
  skip_under_sanitizer
  needs_tools
  agree_on sh -c 'ls / | sort'
}

@test "second reader: threads" {
  skip_under_sanitizer
  needs_tools
  agree_on "$HEAPTAPE_PROGRAMS/threads" 500
}

# Blocks stay live for long and are freed in order; their slots are encoded relative to each other.
@test "second reader: python3" {
  skip_under_sanitizer
  needs_tools
  "$HEAPTAPE" record -q -f -o t.ht -- python3 -c 'import json
json.loads(json.dumps([{str(i): [i] * 3} for i in range(3000)]))'
  agree_on_workloads
}

@test "second reader: call sites" {
  needs_tools
  skip_under_sanitizer
  "$HEAPTAPE" record -q -f --stacks=8 -o t.ht -- "$HEAPTAPE_PROGRAMS/stacks" deep 12 >told
  agree t.ht sort
  [ "$(grep -c '"site":' want)" -ge 12 ]
  agree_on_workloads
  [ "$(grep -c '"site":' want)" -ge 12 ]
}

@test "second reader: calls of a second allocator" {
  needs_tools
  printf '%s\n' '{"kind":"malloc","pid":1,"tid":1,"size":10,"result":1,"allocator":4}' '{"kind":"malloc","pid":1,"tid":1,"size":20,"result":2}' \
    '{"kind":"free","pid":1,"tid":1,"ptr":1,"allocator":4}' | "$HEAPTAPE" import -q -F json -o a.htw -
  agree a.htw
  [ "$(grep -c '"allocator":4' want)" -eq 2 ]
}
