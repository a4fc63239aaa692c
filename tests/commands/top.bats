load ../helper

golden=$HEAPTAPE_SOURCE/tests/golden/stacks-2.ht

# grow BLOCKS SIZE: makes the recorded program allocate, and waits until the trace has the events.
grow() {
  local answer
  echo "$1 $2" >&7
  read -t 60 -r answer <&8
  [ "$answer" = done ]
  "$HEAPTAPE" ctl "$(pgrep -P "$recorder")" sync
}

# begin: `grows` runs under the recorder, which writes t.ht.
begin() {
  mkfifo in out
  "$HEAPTAPE" record -q -f --stacks=4 -o t.ht -- "$HEAPTAPE_PROGRAMS/grows" <in >out 2>err &
  recorder=$!
  exec 7>in 8<out
  grow 1000 5000
}

end() {
  exec 7>&- 8<&-
  wait "$recorder"
}

# until_table PATTERN: waits until `tables` contains PATTERN.
until_table() {
  wait_until grep -q "$1" tables || { cat tables; return 1; }
}

# on_terminal STEPS COMMAND...: runs the command on a pseudo terminal; see tests/terminal.py.
on_terminal() {
  run timeout 120 python3 "$HEAPTAPE_SOURCE/tests/terminal.py" "$@"
}

@test "top: a complete trace has stat's figures at the end" {
  heaptape top "$golden"
  [ "$status" -eq 0 ]
  has "$output" "(process 28837): ended after 176.2 ms (final state)"
  has "$output" "live 4.0 KiB in 1 block, peak 6.8 KiB"
  grep -Eq '^ +4\.0 KiB +1 ' <<<"$output"
  has "$output" "call site"
  [ "$(grep -c $'\033' <<<"$output")" -eq 0 ]
  heaptape stat -v "$golden"
  has "$(tr -s ' ' <<<"$output")" "live at end 4.0 KiB"
  has "$(tr -s ' ' <<<"$output")" "peak live 6.8 KiB"
  heaptape top -n 5 --by thread "$golden"
  [ "$(grep -c 'ended after' <<<"$output")" -eq 1 ]
  has "$output" "28837"
}

@test "top: live bytes and blocks during a recording" {
  skip_under_sanitizer
  begin
  # The last frame is counted even if no frame follows, but perhaps only in a later table.
  shows() { heaptape top -n 1 "${@:2}" && [ "$status" -eq 0 ] && grep -Eq "$1" <<<"$output"; }
  wait_until shows '^ +4\.8 MiB +1 000 .* up to 8\.0 KiB$' --by size t.ht
  grep -Eq '^grows \(process [0-9]+\): recording ' <<<"$output"
  [ "$(grep -c "final state" <<<"$output")" -eq 0 ]
  expect "RSS with heaptape's own" grep -Eq "; RSS [0-9.]+ [KMG]iB with heaptape's own; " <<<"$output"
  [ "$(grep -c "RSS not known" <<<"$output")" -eq 0 ]
  # By default, rows are allocating functions.
  wait_until shows '^ +4\.8 MiB +1 000 .* grow' t.ht
  grow 500 5000
  wait_until shows '^ +7\.2 MiB +1 500 .* up to 8\.0 KiB$' --by size "$(pgrep -P "$recorder")"
  end
}

@test "top: follows to the end, with rates of each interval" {
  skip_under_sanitizer
  begin
  "$HEAPTAPE" top -b -d 300 --by size t.ht >tables 7>&- 8<&- &
  local top=$!
  until_table "recording"
  # Allocates the blocks until all of them were allocated in one interval. A busy machine may suspend
  # the program or the recorder between two of them.
  local blocks at_once=
  for blocks in '3\.8 MiB *100 000' '7\.6 MiB *200 000' '11\.4 MiB *300 000' '15\.3 MiB *400 000' '19\.1 MiB *500 000'; do
    grow 100000 40
    # In a later interval, the program made no calls.
    until_table "^ *$blocks *0 B *0 *0 B  up to 64 B\$"
    ! grep -q "^ *$blocks *+[0-9.]* MiB .* up to 64 B\$" tables || { at_once=yes && break; }
  done
  [ -n "$at_once" ]
  end
  wait "$top"
  [ "$(grep -c 'ended after' tables)" -eq 1 ]
  tail -n 20 tables | grep -q "ended after"
}

@test "top: starts over after a reset" {
  skip_under_sanitizer
  begin
  "$HEAPTAPE" top -b -d 200 --by size t.ht >tables 7>&- 8<&- &
  local top=$!
  until_table '1 000 .* up to 8.0 KiB'
  heaptape ctl "$(pgrep -P "$recorder")" reset
  [ "$status" -eq 0 ]
  grow 700 5000
  until_table '^ *3\.3 MiB *700 .* up to 8\.0 KiB$'
  # While top does not run, the file becomes longer again than the part that top has read.
  kill -STOP "$top"
  size=$(stat -c %s t.ht)
  heaptape ctl "$(pgrep -P "$recorder")" reset
  [ "$status" -eq 0 ]
  grow 100000 40
  [ "$(stat -c %s t.ht)" -gt "$size" ]
  end
  kill -CONT "$top"
  wait "$top"
  tail -n 12 tables | grep -Eq '^ +3\.8 MiB +100 000 .* up to 64 B$'
}

@test "top: a recorder that was killed" {
  skip_under_sanitizer
  begin
  "$HEAPTAPE" top -b --by size t.ht >tables 7>&- 8<&- &
  local top=$!
  until_table "recording"
  kill -KILL "$recorder"
  wait "$top"
  grep -q "cut off after .* (final state)" tables
  exec 7>&- 8<&-
  wait "$recorder" || true
}

@test "top: a file that grows in pieces" {
  exec 9>t.ht
  head -c 700 "$golden" >&9
  "$HEAPTAPE" top -b -d 100 t.ht >tables 7>&- 8<&- &
  local top=$!
  # In the middle of a frame. The rest follows when top has printed a table.
  until_table "recording"
  tail -c +701 "$golden" | head -c 300 >&9
  tail -c +1001 "$golden" >&9
  wait "$top"
  exec 9>&-
  [ "$(grep -c "ended after 176.2 ms" tables)" -eq 1 ]
  grep -q "live 4.0 KiB in 1 block" tables
}

@test "top: tables while the recording is ahead of top" {
  skip_under_sanitizer
  # More data than top reads within a few tables.
  printf '#include <stdlib.h>\nint main(void) { for (int i = 0; i < 8000000; i++) free(malloc(i %% 100 + 1)); }\n' >many.c
  gcc -O0 -o many many.c
  "$HEAPTAPE" record -q -f -o many.ht -- ./many
  # A complete trace has no writer, so top prints one table.
  heaptape top -b -d 100 --by size many.ht
  [ "$(grep -c "(process " <<<"$output")" -eq 1 ]
  exec 9>>many.ht
  heaptape top -b -d 100 --by size many.ht
  exec 9>&-
  grep -Eq '\(process [0-9]+\): reading .*, [0-9]+ % read: behind the recording$' <<<"$output"
  [ "$(grep -c "ended after" <<<"$output")" -eq 1 ]
  heaptape top -n 1 -d 100 --by size many.ht 9>>many.ht
  [ "$(grep -c "(process " <<<"$output")" -eq 1 ]
  has "$output" "behind the recording"
}

@test "top: a file without a writer" {
  head -c -5 "$golden" >t.ht
  heaptape top t.ht
  [ "$status" -eq 0 ]
  has "$output" "cut off after"
}

@test "top: damaged and wrong files, usage" {
  local size
  size=$(stat -c %s "$golden")
  cp "$golden" t.ht
  printf 'damage' | dd of=t.ht bs=1 seek=$((size / 2)) conv=notrunc status=none
  heaptape top t.ht
  fails_with 1 "t.ht: " "at byte"
  heaptape top nowhere.ht
  fails_with 1 "nowhere.ht: No such file"
  : >empty
  heaptape top empty
  fails_with 1 "empty: is empty"
  heaptape top .
  fails_with 1 ".: is a directory"
  heaptape top "$HEAPTAPE_SOURCE/tests/golden/workload-1.htw"
  fails_with 1 "is a workload, expected a trace"
  mkfifo pipe
  cat "$golden" >pipe &
  heaptape top pipe
  fails_with 1 "pipe: is not a regular file"
  heaptape top $$
  fails_with 1 "$$: is not being recorded"
  heaptape top 0
  usage_fails "'0' is not a process ID"
  heaptape top --pid 1 1
  usage_fails "--pid requires a FILE"
  cp "$golden" 12
  heaptape top ./12
  [ "$status" -eq 0 ]
}

@test "top: a recording that is written to a pipe" {
  skip_under_sanitizer
  mkfifo in out
  "$HEAPTAPE" record -q -o - -- "$HEAPTAPE_PROGRAMS/grows" <in 2>err > >(cat >/dev/null) &
  recorder=$!
  exec 7>in
  local pid
  answers() { pid=$(pgrep -P "$recorder" grows) && "$HEAPTAPE" ctl "$pid" status >status 2>&1; }
  wait_until answers
  heaptape top "$pid"
  fails_with 1 "$pid: its recorder, process $recorder, writes no trace to a file"
  exec 7>&-
  wait "$recorder"
}

@test "top: control characters in names do not reach the terminal" {
  skip_under_sanitizer
  local name=$'evil\033[31m\a'
  cp "$HEAPTAPE_PROGRAMS/grows" "$name"
  "$HEAPTAPE" record -q -o t.ht -- "./$name" </dev/null
  heaptape top t.ht
  has "$output" 'evil\x1b[31m\x07 (process'
  [ "$(grep -c $'[\001-\011\013-\037]' <<<"$output")" -eq 0 ]
}

@test "top: keys, resizing and quitting on a terminal" {
  [ -z "$NO_COLOR" ]
  # Shows sizes, sorts by the next column, moves the view to the right, and quits.
  on_terminal "wait:ended,key:z,wait:up to,key:>,wait:*blocks,key:right,wait:28837,size:10x60,wait:28837,key:q" \
    "$HEAPTAPE" top "$golden"
  expect "all steps" [ "$status" -eq 0 ]
  has "$output" "exit 0"
  has "$output" "restored"
  has "$output" "after resize: at most 10 rows, cut at 60 columns"
  on_terminal "wait:ended,key:q" env NO_COLOR=1 LANG=C "$HEAPTAPE" top "$golden"
  has "$output" "restored"
  has "$output" "bold 0"
  on_terminal "wait:ended,key:q" "$HEAPTAPE" top "$golden"
  has "$output" "bold 1"
}

@test "top: every signal restores the terminal" {
  local signal
  for signal in INT TERM HUP QUIT SEGV; do
    on_terminal "wait:ended,signal:$signal" "$HEAPTAPE" top "$golden"
    expect "SIG$signal" [ "$status" -eq 0 ]
    has "$output" "killed by SIG$signal"
    has "$output" "restored"
  done
  # A late error also restores the terminal.
  head -c 700 "$golden" >t.ht
  exec 9>>t.ht
  on_terminal "wait:recording,append:t.ht,wait:heaptape" "$HEAPTAPE" top t.ht
  exec 9>&-
  has "$output" "exit 1"
  has "$output" "restored"
}

@test "top: stopped and continued" {
  on_terminal "wait:ended,signal:TSTP,stopped:,signal:CONT,wait:ended,key:q" "$HEAPTAPE" top "$golden"
  expect "all steps" [ "$status" -eq 0 ]
  has "$output" "exit 0"
  has "$output" "restored"
}
