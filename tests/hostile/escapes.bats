load hostile

# A trace with names that could control a terminal: escapes, 8-bit control characters, bidirectional
# text, invalid UTF-8.
plant() {
  bad=$'\e]0;owned\a\x9b31m\xc2\x9b2J\xe2\x80\xae\xff\r\b'
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <<END
process 100 prog$bad arg$bad
0 900 heaptape.module ptr=0x4141414100000000 size=0x100000000 text=0123^/lib/$bad.so
0 950 heaptape.stack value=7 text=AAAAAAAA
0 1000 malloc size=32 result=0x1000 site=7
0 1050 mark text=phase$bad
0 1060 thread.create value=1
1 1070 thread.start value=0 text=name$bad
1 1080 free ptr=0x1000
process 200 other$bad
0 1500 malloc size=9 result=0x2000
end
END
}

# clean FILE: contains only UTF-8 without control characters.
clean() {
  python3 - "$1" <<'PYTHON'
import sys, unicodedata
text = open(sys.argv[1], "rb").read().decode()
bad = sorted({c for c in text if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")})
print(sys.argv[1], [hex(ord(c)) for c in bad])
sys.exit(bool(bad))
PYTHON
}

@test "names from a file reach a terminal only escaped" {
  plant
  for how in "stat" "stat --json" "stat --by site" "stat --by site --json" "stat --by site --format folded" "dump" "dump --format json" \
    "convert -f -o a.htw" "convert -f -p all -o a.%p.htw" "export -F json" "export -F android" "check"; do
    echo "$how"
    timeout -k 1 120 "$HEAPTAPE" $how a.ht >out 2>said || true
    [ -s out ] || [ -s said ]
    clean out
    clean said
  done
  for how in "stat" "dump" "export -F json" "export -F logalloc"; do
    timeout -k 1 120 "$HEAPTAPE" $how a.htw >out 2>said
    clean out
    clean said
  done
  "$HEAPTAPE" stat --by site --format pprof a.ht | (zcat 2>/dev/null || true) >profile
  [ -s profile ] || "$HEAPTAPE" stat --by site --format pprof a.ht >profile
  [ -s profile ]
  python3 -c 'import sys; sys.exit(any(b in open("profile", "rb").read() for b in (b"\x1b]", b"\xff\r", b"\xc2\x9b")))'
}

# prints COMMAND...: the output of heaptape is not empty, and clean on both descriptors.
prints() {
  echo "$*"
  timeout -k 1 120 "$HEAPTAPE" "$@" >out 2>said || true
  [ -s out ] || [ -s said ]
  clean out
  clean said
}

@test "names of files, and names in results and indexes, reach a terminal only escaped" {
  plant
  local file="w$bad.htw"
  # A two-byte letter at every position where a name may be cut.
  local long
  long=$(printf 'é%.0s' {1..100})
  "$HEAPTAPE_PROGRAMS/make_workload" a.htw churn 1 2000 >/dev/null
  cp a.htw "$file"
  cp a.ht "t$bad.ht"
  prints check "$file"
  prints check "t$bad.ht"
  prints stat "$file"
  prints stat "$file" "$file"
  prints replay -r 1 -a glibc "$file"
  prints replay --verify -a glibc "$file"
  prints compare -r 2 -a glibc "$file"
  prints diff "$file" "$file"
  prints matrix -w "$file" -a glibc -r 2 m
  prints dump "none$bad"
  "$HEAPTAPE" replay -q --json -r 1 -a glibc a.htw >r.json
  python3 - "$long" "$HEAPTAPE_SOURCE" <<'PYTHON'
import json, sys
bad = "\x1b]0;owned\a\x9b31m\u202e\r\b"
for name in bad + "x", "a" + sys.argv[1], sys.argv[1]:
    for number in 1, 2:
        r = json.load(open("r.json"))
        r["allocator"]["name"], r["allocator"]["tunables"] = name, [bad, sys.argv[1]]
        r["machine"]["cpu_governor"] = bad
        json.dump(r, open(f"r{number}{len(name)}.json", "w"))
index = json.load(open(sys.argv[2] + "/corpus/index.json"))
for i, entry in enumerate(index["entries"]):
    entry["program"], entry["version"] = bad + "x" if i % 2 else "a" + sys.argv[1], sys.argv[1] if i % 2 else bad
json.dump(index, open("index.json", "w"))
PYTHON
  for file in r1*.json; do
    prints report --pool "$file"
    prints report --diff "$file" "r2${file#r1}"
    cp "$file" m/1.json
    prints matrix m
  done
  mkdir c && mv index.json c
  prints corpus list -d c
  # Columns stay aligned: each row has the width of the heading, in characters.
  python3 - <<'PYTHON'
rows = open("out", encoding="utf-8").read().splitlines()
assert len({len(row) for row in rows}) == 1, [len(row) for row in rows]
PYTHON
}

@test "a truncated file: stat --by reports it; convert -p all keeps finished workloads and reports it" {
  plant
  "$HEAPTAPE_PROGRAMS/make_trace" b.ht <<'END'
process 100 first
0 950 heaptape.stack value=7 text=AAAAAAAA
0 1000 malloc size=32 result=0x1000 site=7
round
0 1000 malloc size=32 result=0x5000 site=7
END
  timeout -k 1 120 "$HEAPTAPE" stat --by site --json b.ht >out 2>said
  [ "$(jq .cut_off out)" = true ]
  has "$(cat said)" "cut off"
  # The last 80 % of the trace are events of the second process.
  {
    printf '%s\n' 'process 100 first' '0 1000 malloc size=32 result=0x1000' exit 'process 200 second'
    awk 'BEGIN { srand(1); for (i = 1; i <= 5000; i++) print 0, 1000 + i, "malloc size=" int(rand() * 1e6), "result=" i * 4096 }'
    echo end
  } | "$HEAPTAPE_PROGRAMS/make_trace" c.ht
  python3 - <<'PYTHON'
data = bytearray(open("c.ht", "rb").read())
at = len(data) * 4 // 5
data[at:at + 40] = bytes(b ^ 0x5a for b in data[at:at + 40])
open("c.ht", "wb").write(data)
PYTHON
  heaptape convert -p all -o c.%p.htw c.ht
  [ "$status" -eq 1 ]
  [ "$(echo c.*.htw)" = c.100.htw ]
  has "$stderr" "that ended before the error, no others"
}
