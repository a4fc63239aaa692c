# Shared by the capture tests: `load trace`.

load ../helper

# record COMMAND [ARG...]: records to t.ht with $record_options; the reports of the program go to
# `told`. Sets $status to its exit status.
record() {
  status=0
  # shellcheck disable=SC2086
  timeout 120 "$HEAPTAPE" record -q -f -o t.ht $record_options -- "$@" >told 2>err || status=$?
  cat err
  "$HEAPTAPE_PROGRAMS/trace_lines" t.ht >lines
}

# heaps FILE: prints the allocators of the process with the highest peak: name, calls, blocks and bytes
# live at the peak, bytes live at the end. Then prints the number of mismatched frees.
heaps() {
  "$HEAPTAPE" stat --json "$1" | jq -r '(.allocators // [] | .[] | [.name, .calls, .live_at_peak_blocks,
    .live_at_peak_bytes, .live_at_end_bytes]), [.mismatched_frees] | join(" ")'
}

# Succeeds if the threads made exactly the reported calls between two marks, in order.
as_told() {
  awk '$5 == "mark" { on[$2, $3] = $13 == "begin"; next }
       on[$2, $3] { print $5, $6, $7, $8, $9, $10, $11, $12 }' lines >recorded
  [ -s told ] && diff told recorded
}

# Counts the events with sizes of TOLD_SIZE: kind, size, count. A free has the size of its block; a
# realloc counts as an allocation in `told`. An allocation may be stamped before the free of the
# previous block at the address: then two blocks are live, and the free is of the older one
# (docs/design/convert.md).
count_lines() {
  awk 'function special(size) { return size >= 5050 && size % 1009 == 5 }
       # Records that were published late are late in the file, so the first pass collects all
       # allocations.
       NR == FNR { if ($10 != "0") live[$2, $10, to[$2, $10]++] = $7; next }
       { kind = $5; given = $6; size = $7 }
       given != "0" && (from[$2, given] < to[$2, given]) && $11 == 0 {
         first = live[$2, given, from[$2, given]++]
         if (kind !~ /^re/) {
           if (special(first)) n[kind " " first]++
           next
         }
       }
       given == "0" && special(size) { n[kind " " size]++ }
       kind ~ /^re/ && given != "0" && special(size) { n[kind " " size]++ }
       END { for (i in n) print i, n[i] }' lines lines | sort
}

# Succeeds if the sums of the reported counts equal the counts of the trace.
counts_as_told() {
  awk '{ n[$1 " " $2] += $3 } END { for (i in n) print i, n[i] }' told | sort >want
  count_lines >recorded
  [ -s want ] && diff want recorded
}

# grow BLOCKS SIZE: makes the program `grows` (input on descriptor 7, output on 8) allocate blocks.
grow() {
  local answer
  echo "$1 $2" >&7
  read -t 60 -r answer <&8
  [ "$answer" = done ]
}

# skip_without_ptrace: skips a test that attaches to a process if only root may.
skip_without_ptrace() {
  if [ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" -gt 0 ] && [ "$(id -u)" -ne 0 ]; then
    skip "kernel.yama.ptrace_scope forbids ptrace"
  fi
}

# starts COMMAND...: starts the command and sets $started to its pid.
starts() {
  rm -f out
  "$@" >out 3>&- &
  started=$!
  wait_until grep -qsx ready out
}

# server_program FILE: copies the program of server.cc to FILE. It is compiled once: for ./check, or for this run of bats.
server_program() {
  local folder=${HEAPTAPE_TEST_SHARED:-$BATS_RUN_TMPDIR}
  command -v g++ >/dev/null || skip "no g++"
  (
    flock 9
    [ -x "$folder/server" ] || g++ -O2 -g -pthread -o "$folder/server" "$HEAPTAPE_SOURCE/tests/capture/server.cc"
  ) 9>"$folder/server.lock"
  cp "$folder/server" "$1"
}

# has_attached PID RECORDER [EVENTS]: at least EVENTS events (default: 1) of the process were read, and
# the child of the recorder that traced it has exited.
has_attached() {
  has_events "$1" "${3:-1}" && [ -z "$(pgrep -P "$2")" ]
}
