# Compares dumps of a flight recording with the whole trace, call by call.
bats_require_minimum_version 1.5.0
load ../helper

golden=$HEAPTAPE_SOURCE/tests/golden

record() {
  skip_under_sanitizer
  "$HEAPTAPE" record -q -f -z lz4 --stacks=8 -o t.ht -- "$@" >/dev/null
  "$HEAPTAPE" dump t.ht | sed 's/ +[0-9.]* / /' >whole.txt
  processes t.ht
}

# processes FILE: writes the figures of each process at its end to FILE.processes.
processes() {
  "$HEAPTAPE" stat --json "$1" |
    jq -c '.processes[] | [.pid, .exe, .live_at_end_bytes, .live_at_end_blocks, .unmatched_frees, .lost_records]' | sort >"$1.processes"
}

# dump BYTES: writes d.ht from a ring of BYTES.
dump() {
  "$HEAPTAPE_PROGRAMS/parts_of_trace" dump d.ht "$1" <t.ht
  "$HEAPTAPE" check -q d.ht
  "$HEAPTAPE" dump d.ht | grep -v ' preexisting(' | sed 's/ +[0-9.]* / /' >part.txt || true
}

# The dump has the last calls of each process and leads to the same live blocks.
is_the_end() {
  awk 'NR == FNR { whole[$1, ++n[$1]] = $0; next }
       { part[$1, ++m[$1]] = $0 }
       END { for (p in m) for (i = 1; i <= m[p]; i++) if (whole[p, n[p] - m[p] + i] != part[p, i]) { print part[p, i]; exit 1 } }' \
    whole.txt part.txt
  processes d.ht
  [ -s d.ht.processes ]
  ! grep -vxFf t.ht.processes d.ht.processes || false
}

# sites FILE: live bytes at the end of the first process, by stack.
sites() {
  "$HEAPTAPE" stat --by site --top 0 --json "$1" |
    jq -c '.sites[] | select(.live_at_end_bytes > 0) | [.live_at_end_bytes, .live_at_end_blocks, [.frames[].address]]' | sort
}

@test "flight: threads that allocate, free and resize" {
  record "$HEAPTAPE_PROGRAMS/paced" 2 0.7 490 20
  sites t.ht >t.sites
  for bytes in 2000 20000 100000; do
    dump $bytes
    [ -s part.txt ]
    [ "$bytes" -gt 20000 ] || [ "$(wc -l <part.txt)" -lt "$(wc -l <whole.txt)" ]
    is_the_end
    diff t.sites <(sites d.ht)
  done
  dump 1000000000
  [ "$(wc -l <part.txt)" -eq "$(wc -l <whole.txt)" ]
  is_the_end
}

@test "flight: forks, each with the blocks of its parent" {
  record "$HEAPTAPE_PROGRAMS/inherits" points
  for bytes in 2000 5000 10000 1000000; do
    dump $bytes
    is_the_end
  done
}

@test "flight: the dump converts and replays" {
  record "$HEAPTAPE_PROGRAMS/paced" 2 0.7 490 20
  dump 20000
  "$HEAPTAPE" convert -q d.ht
  "$HEAPTAPE" replay -q -r 1 --json d.htw >replay.json
  [ "$(jq .live_at_end_bytes replay.json)" -eq "$("$HEAPTAPE" stat --json d.ht | jq .live_at_end_bytes)" ]
  [ "$(jq .preexisting replay.json)" -gt 0 ]
}

@test "flight: truncated files and files of other kinds are refused with one line" {
  head -c "$(($(stat -c %s "$golden/trace-1.ht") - 300))" "$golden/trace-1.ht" >cut
  echo "no trace" >whole.txt
  run -1 "$HEAPTAPE_PROGRAMS/parts_of_trace" dump d.ht 100000 <whole.txt
  [ "${#lines[@]}" -eq 1 ]
  "$HEAPTAPE_PROGRAMS/parts_of_trace" dump d.ht 100000 <cut
  "$HEAPTAPE" check -q d.ht
}
