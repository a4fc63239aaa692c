load hostile

# A trace whose names would take over a terminal: escapes, control characters of 8 bits, text that runs backwards, bytes
# that are no UTF-8.
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

# clean FILE: nothing in it that a terminal acts on, and only UTF-8.
clean() {
  python3 - "$1" <<'PYTHON'
import sys, unicodedata
text = open(sys.argv[1], "rb").read().decode()
bad = sorted({c for c in text if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")})
print(sys.argv[1], [hex(ord(c)) for c in bad])
sys.exit(bool(bad))
PYTHON
}

@test "names from a file never reach a terminal as they are" {
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

@test "a cut-off file: stat --by says so; convert -p all leaves what it finished, and says so" {
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
  "$HEAPTAPE" record -q -o c.ht -- sh -c 'ls / >/dev/null; sleep 0.5; ls -R /usr/include >/dev/null; true'
  python3 - <<'PYTHON'
data = bytearray(open("c.ht", "rb").read())
at = len(data) * 4 // 5
data[at:at + 40] = bytes(b ^ 0x5a for b in data[at:at + 40])
open("c.ht", "wb").write(data)
PYTHON
  heaptape convert -p all -o c.%p.htw c.ht
  [ "$status" -eq 1 ]
  ls c.*.htw
  has "$stderr" "complete; others are not written"
}
