# What the capture tests share: `load trace`.

load ../helper

# record COMMAND [ARG...]: under the recorder, into t.ht; what the program tells goes to `told`. $status is its own.
# The options of heaptape record are taken from $record_options.
record() {
  status=0
  # shellcheck disable=SC2086
  timeout 120 "$HEAPTAPE" record -q -f -o t.ht $record_options -- "$@" >told 2>err || status=$?
  cat err
  "$HEAPTAPE_PROGRAMS/trace_lines" t.ht >lines
}

# Succeeds when the threads that told their calls between two marks made them, all of them, in this order.
as_told() {
  awk '$5 == "mark" { on[$2, $3] = $13 == "begin"; next }
       on[$2, $3] { print $5, $6, $7, $8, $9, $10, $11, $12 }' lines >recorded
  [ -s told ] && diff told recorded
}

# The events with sizes of TOLD_SIZE: kind, size, how often. The size of what is freed is that of its block; `told` of a
# realloc counts it as taken. A take may be stamped a moment too early, before the give of the block that had the address:
# then there are two, and the give is of the first (docs/design/convert.md).
count_lines() {
  awk 'function special(size) { return size >= 5050 && size % 1009 == 5 }
       # A record that was published late stands late: so the takes are all collected first.
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

# Succeeds when the counts that the program told, added up, are those of the trace.
counts_as_told() {
  awk '{ n[$1 " " $2] += $3 } END { for (i in n) print i, n[i] }' told | sort >want
  count_lines >recorded
  [ -s want ] && diff want recorded
}

# grow BLOCKS SIZE: the program `grows`, whose input is descriptor 7 and output 8, allocates them.
grow() {
  local answer
  echo "$1 $2" >&7
  read -t 60 -r answer <&8
  [ "$answer" = done ]
}

# skip_without_ptrace: skips a test that attaches to a process where only root may.
skip_without_ptrace() {
  if [ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" -gt 0 ] && [ "$(id -u)" -ne 0 ]; then
    skip "kernel.yama.ptrace_scope forbids ptrace"
  fi
}

# starts COMMAND...: its pid is in $started.
starts() {
  rm -f out
  "$@" >out 3>&- &
  started=$!
  wait_until grep -qsx ready out
}
