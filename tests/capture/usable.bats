load trace

# Succeeds if the calls between the marks equal the reported ones, with their usable sizes.
usable_as_told() {
  "$HEAPTAPE_PROGRAMS/trace_lines" -u t.ht >lines
  awk '$5 == "mark" { on = $13 ~ /^begin/; next }
       on { print $5, $6, $7, $8, $9, $10, $11, $12, $13 }' lines >recorded
  [ -s told ] && diff told recorded
}

@test "--usable: every block is filled completely, on each allocator" {
  skip_under_sanitizer
  record_options=--usable record "$HEAPTAPE_PROGRAMS/usable"
  [ "$status" -eq 0 ]
  usable_as_told
  for name in jemalloc tcmalloc_minimal mimalloc; do
    library=$(ldconfig -p | sed -n "s|.*lib$name\.so\.[0-9.]* .*=> ||p" | head -n 1)
    [ -n "$library" ] || continue
    record_options="--usable -a $library" record "$HEAPTAPE_PROGRAMS/usable"
    [ "$status" -eq 0 ]
    usable_as_told
  done
}

@test "--usable: stat reports requested and usable bytes" {
  skip_under_sanitizer
  record_options=--usable record "$HEAPTAPE_PROGRAMS/usable"
  "$HEAPTAPE" convert -q -o t.htw t.ht
  for file in t.ht t.htw; do
    "$HEAPTAPE" stat --json $file >stat
    requested=$(sed -n 's/.*"usable_requested_bytes": \([0-9]*\),/\1/p' stat | tail -n 1)
    usable=$(sed -n 's/.*"usable_bytes": \([0-9]*\),/\1/p' stat | tail -n 1)
    [ "$requested" -eq "$(sed -n 's/.*"requested_bytes": \([0-9]*\),/\1/p' stat | head -n 1)" ]
    [ "$usable" -eq "$("$HEAPTAPE" dump --format json t.ht | sed -n 's/.*"usable":\([0-9]*\).*/\1/p' | awk '{ n += $1 } END { print n }')" ]
    [ "$usable" -gt "$requested" ]
  done
}

@test "--usable: preexisting blocks, whose size is known only from it" {
  skip_under_sanitizer
  record_options=--usable record "$HEAPTAPE_PROGRAMS/usable" paused
  [ "$status" -eq 0 ]
  "$HEAPTAPE" convert -q -o t.htw t.ht
  "$HEAPTAPE" dump -k preexisting t.htw | sed 's/.*(\([0-9]*\)).*/\1/' | sort >recorded
  awk '{ print $3 }' told | sort >want
  [ "$(wc -l <want)" -eq 100 ]
  diff want recorded
  "$HEAPTAPE" replay -q t.htw
}

@test "--usable: C++ operators, and with call sites" {
  skip_under_sanitizer
  [ -x "$HEAPTAPE_PROGRAMS/calls_cxx" ] || skip "no C++ compiler"
  record_options='--usable --stacks=4' record "$HEAPTAPE_PROGRAMS/calls_cxx"
  [ "$status" -eq 0 ]
  sed -i '/ heaptape\./d' lines
  as_told
  # Every allocation has both a site and a usable size.
  "$HEAPTAPE" dump t.ht | grep -E '[)] = 0x' >taken
  [ "$(grep -c ' new' taken)" -ge 8 ]
  [ "$(grep -c 'site=.* usable=' taken)" -eq "$(wc -l <taken)" ]
}

@test "--usable: an mtrace file shows which blocks are separate mappings, and which reallocs moved" {
  skip_under_sanitizer
  "$HEAPTAPE" record -q -f --usable -F mtrace -o t.mtrace -- "$HEAPTAPE_PROGRAMS/paths"
  python3 - t.mtrace >paths.txt <<'PY'
import struct, sys
data = open(sys.argv[1], "rb").read()
names = {12: "mmap", 13: "munmap", 14: "malloc_free"}
kinds = {1: "malloc", 3: "free", 4: "realloc"}
for i in range(64, len(data), 64):
    tid, word, ptr1, ptr2, size, size2, size3 = struct.unpack_from("<iIQQQQQ", data, i)
    print(kinds[word & 255], size, *(names[bit] for bit in range(8, 32) if word >> bit & 1), size2, size3)
PY
  diff - paths.txt <<'END'
malloc 100 0 112
malloc 1048576 mmap 0 1052672
malloc 200 0 208
free 0 208 0
realloc 2097152 1052672 2101248
malloc 100 0 112
realloc 5000 malloc_free 112 5008
realloc 5000 5008 5008
realloc 1048576 2101248 1052672
realloc 1048576 mmap malloc_free 5008 1052672
free 0 munmap 1052672 0
free 0 munmap 1052672 0
free 0 112 0
END
  # Without usable sizes, the paths of all calls are empty.
  "$HEAPTAPE" record -q -f -F mtrace -o t.mtrace -- "$HEAPTAPE_PROGRAMS/paths"
  python3 - t.mtrace <<'PY'
import struct, sys
data = open(sys.argv[1], "rb").read()
assert all(struct.unpack_from("<I", data, i + 4)[0] < 256 for i in range(0, len(data), 64))
PY
}
