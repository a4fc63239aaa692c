load ../helper

# a.ht: two processes with events of all kinds.
example() {
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <<'END'
process 100 prog -x
0 1000 malloc size=32 result=0x1000
0 2000 thread.create value=1
1 2500 thread.start value=0 text=worker
1 3000 calloc size=48 count=3 result=0x2000
1 4000 free ptr=0x1000
0 5000 realloc.begin ptr=0x2000
0 5100 realloc size=96 result=0x3000
0 5200 posix_memalign size=96 align=64 result=0x4000
0 5300 malloc size=99999999999 error=12
0 5400 mark text=here
0 6000 free ptr=0x3000
1 7000 thread.end
process 200 second
0 8000 new[](nothrow) size=32 result=0x1000
0 9000 delete[](size) size=32 ptr=0x1000
end
END
}

@test "export %p: the images of a process have files of their own" {
  "$HEAPTAPE_PROGRAMS/make_trace" x.ht <<'END'
process 5 a
0 1000 malloc size=32 result=0x1000
process 5 b
1 2000 malloc size=64 result=0x2000
process 6 c
2 3000 malloc size=128 result=0x3000
end
END
  for force in "" -f; do
    # shellcheck disable=SC2086
    "$HEAPTAPE" export -q $force -F ctf -o ctf-%p x.ht
    # shellcheck disable=SC2086
    "$HEAPTAPE" export -q $force -F logalloc -o log-%p x.ht
    [ "$(echo ctf-* log-*)" = "ctf-5 ctf-5.1 ctf-6 log-5 log-5.1 log-6" ]
    [ "$(grep -ho 'malloc([0-9]*)' log-5 log-5.1 log-6 | tr '\n' ' ')" = "malloc(32) malloc(64) malloc(128) " ]
  done
  "$HEAPTAPE" export -q -F logalloc -o log-%p x.ht
  [ "$(echo log-*)" = "log-5 log-5.1 log-5.2 log-5.3 log-6 log-6.1" ]
  heaptape export -F csv -t events -o 'events-%p' x.ht
  usage_fails "-o events-%p: a table contains all processes; use --partition"
}

@test "ctf: babeltrace2 reads it without a warning and prints the same as dump" {
  command -v babeltrace2 >/dev/null || skip "babeltrace2 is not installed"
  example
  heaptape export -F ctf -o a.ctf a.ht
  expect "status 0" [ "$status" -eq 0 ]
  babeltrace2 a.ctf >lines 2>complaints
  expect "no warning" [ ! -s complaints ]
  expect "13 events" [ "$(wc -l <lines)" -eq 13 ]
  has "$(cat lines)" "malloc: { pid = 100, tid = "
  has "$(cat lines)" "{ size = 32, result = 0x1000, error = 0 }"
  has "$(cat lines)" "{ size = 99999999999, result = 0x0, error = 12 }"
  has "$(cat lines)" "{ ptr = 0x2000, size = 96, result = 0x3000, error = 0 }"
  has "$(cat lines)" "{ size = 96, align = 64, result = 0x4000, error = 0 }"
  has "$(cat lines)" '{ text = "here" }'
  has "$(cat lines)" 'delete[](size): { pid = 200'
}

@test "ctf: all recorded events of each kind, in several packets" {
  skip_under_sanitizer
  command -v babeltrace2 >/dev/null || skip "babeltrace2 is not installed"
  "$HEAPTAPE" record -q -o a.ht -- ls -lR /usr/share/doc >/dev/null
  "$HEAPTAPE" export -q -F ctf -o a.ctf a.ht
  babeltrace2 a.ctf 2>complaints | sed 's/^[^ ]* [^ ]* \(.*\): { pid.*/\1/; s/: { pid.*//' | sort | uniq -c >got
  expect "no warning" [ ! -s complaints ]
  "$HEAPTAPE" dump a.ht | sed 's/^[^+]*+[0-9.]* \([^ ]*\)(.*/\1/; s/(.*//' | sort | uniq -c >want
  diff <(awk '{ print $1 }' want | sort) <(awk '{ print $1 }' got | sort)
}

@test "ctf: of a workload" {
  command -v babeltrace2 >/dev/null || skip "babeltrace2 is not installed"
  example
  "$HEAPTAPE" convert -q -p 100 -o a.htw a.ht
  "$HEAPTAPE" export -q -F ctf -o a.ctf a.htw
  babeltrace2 a.ctf >lines 2>complaints
  expect "no warning" [ ! -s complaints ]
  expect "11 ops" [ "$(wc -l <lines)" -eq 11 ]
}

@test "ctf: a folder is replaced only with -f, and only when it is an export" {
  example
  heaptape export -F ctf a.ht
  fails_with 1 "ctf writes a directory: name it with -o"
  "$HEAPTAPE" export -q -F ctf -o a.ctf a.ht
  heaptape export -F ctf -o a.ctf a.ht
  fails_with 1 "a.ctf: exists; use -f to replace it"
  : >a.ctf/stream_9_9
  "$HEAPTAPE" export -q -f -F ctf -o a.ctf a.ht
  [ ! -e a.ctf/stream_9_9 ]
  [ -e a.ctf/metadata ]
  mkdir other
  : >other/thing
  heaptape export -f -F ctf -o other a.ht
  fails_with 1 "other: cannot replace"
  [ -e other/thing ]
  [ -z "$(find . -name '*.tmp-*')" ]
  head -c 400 a.ht >cut.ht
  heaptape export -F ctf -o cut.ctf cut.ht
  [ -z "$(find . -name '*.tmp-*')" ]
}

# same_sites FILE: the stack of each event read by babeltrace2 equals the stack in the JSON export.
same_sites() {
  "$HEAPTAPE" export -q -F json -o - "$1" | python3 -c '
import json, sys
FACTOR, MASK = 0xd6e8feb86659fd93, (1 << 59) - 1
stacks, n = {0: ()}, 0
for e in map(json.loads, sys.stdin):
    if e["kind"] == "heaptape.stack":
        stacks[e["site"]] = tuple(int(f, 16) for f in e["frames"])
    elif e["kind"] == "heaptape.frame":
        stacks[e["site"]] = (int(e["ptr"], 16), *stacks[e["outer"]])
    elif e["kind"] == "heaptape.frames":
        site = e["outer"]
        for f in reversed(e["frames"]):
            outer, site = site, (site * FACTOR + int(f, 16)) & MASK
            stacks[site] = (int(f, 16), *stacks[outer])
    elif e.get("site"):
        print(e["kind"], *map(hex, stacks[e["site"]]))' | sort >want
  babeltrace2 --clock-seconds "$2" 2>complaints | python3 -c '
import re, sys
stacks = {0: ()}
for line in sys.stdin:
    kind = re.search(r"\) (\S+): \{", line)[1]
    site, outer = re.search(r"\bsite = (\d+)", line), re.search(r"outer = (\d+)", line)
    if kind == "heaptape.stack":
        stacks[int(site[1])] = tuple(int(f, 16) for f in re.findall(r"\] = (0x[0-9A-Fa-f]+)", line))
    elif kind == "heaptape.frame":
        stacks[int(site[1])] = (int(re.search(r"ptr = (0x[0-9A-Fa-f]+)", line)[1], 16), *stacks[int(outer[1])])
    elif site:
        print(kind, *map(hex, stacks[int(site[1])]))' | sort >got
  expect "no warning" [ ! -s complaints ]
  diff want got
}

@test "ctf: with the stacks of call sites, from a trace and from a workload" {
  command -v babeltrace2 >/dev/null || skip "babeltrace2 is not installed"
  for f in stacks-1 stacks-2; do
    "$HEAPTAPE" export -q -f -F ctf -o "$f.ctf" "$HEAPTAPE_SOURCE/tests/golden/$f.ht"
    same_sites "$HEAPTAPE_SOURCE/tests/golden/$f.ht" "$f.ctf"
    [ "$(wc -l <got)" -ge 3 ]
    "$HEAPTAPE" convert -q -o "$f.htw" "$HEAPTAPE_SOURCE/tests/golden/$f.ht"
    "$HEAPTAPE" export -q -f -F ctf -o "$f.w.ctf" "$f.htw"
    same_sites "$f.htw" "$f.w.ctf"
    [ "$(wc -l <got)" -ge 3 ]
  done
}
