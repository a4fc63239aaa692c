# record --flight: dumps of the last part of a recording.
bats_require_minimum_version 1.5.0
load trace

# begin OPTION...: starts `grows` under a flight recorder; sets $program to its PID.
begin() {
  skip_under_sanitizer
  mkfifo in out
  "$HEAPTAPE" record --flight 8M --stacks=4 -o d.%n.ht "$@" -- "$HEAPTAPE_PROGRAMS/grows" <in >out 2>err &
  recorder=$!
  exec 7>in 8<out
  grow 100 5000
  program=$(pgrep -P $recorder -x grows)
}

finish() {
  exec 7>&- 8<&-
  status=0
  wait $recorder || status=$?
  recorder=
  cat err
}

teardown() {
  show_failure
  exec 7>&- 8<&-
  [ -z "${recorder:-}" ] || kill -9 "$recorder" 2>/dev/null || true
}

comes() {
  wait_until [ -e "$1" ]
}

# live FILE: live bytes at its end and at its start.
live() {
  "$HEAPTAPE" check -q "$1"
  "$HEAPTAPE" stat --json "$1" | jq -r '.live_at_end_bytes, (.preexisting_bytes // 0)' | tr '\n' ' '
}

is_between() {
  [ "$1" -ge "$2" ]
  [ "$1" -lt "$3" ]
}

@test "flight: a signal and ctl request dumps while the program runs" {
  begin
  kill -USR2 $recorder
  comes d.1.ht
  # The dump has all calls before the request, although the process that writes the dump has not
  # read older calls yet.
  writer=$(pgrep -P $recorder -x heaptape)
  kill -STOP "$writer"
  grow 50 7000
  "$HEAPTAPE" ctl "$program" sync
  grow 50 7000
  "$HEAPTAPE" ctl "$program" dump
  kill -CONT "$writer"
  comes d.2.ht
  finish
  [ "$status" -eq 0 ]
  comes d.3.ht
  is_between "$(live d.1.ht | cut -d' ' -f1)" 500000 600000
  is_between "$(live d.2.ht | cut -d' ' -f1)" 1200000 1300000
  [ "$("$HEAPTAPE" stat --json d.1.ht | jq -r .recorded.dumped_because)" = "requested" ]
  "$HEAPTAPE" stat -v d.3.ht | grep -q '^dumped because  *exit: the program exited with status 0$'
  grep -q '^heaptape: wrote d.1.ht: the last ' err
}

# drops_first WINDOW: a dump lists the first 100 blocks, because the ring has dropped their calls. The
# next dump has number $n.
drops_first() {
  sleep "$1"
  "$HEAPTAPE" ctl "$program" dump
  comes d.$n.ht
  n=$((n + 1))
  [ "$(live d.$((n - 1)).ht | cut -d' ' -f2)" -ge 500000 ]
}

@test "flight: blocks older than the ring are live at the start of the dump, with their call sites" {
  # The last 10 calls are in the ring if the recording ends soon after them. On a machine that is too
  # busy, a recording with a longer ring is made.
  local window n made past
  for window in 0.3 3 30; do
    rm -f in out d.*.ht
    begin --flight "${window}s"
    n=1
    wait_until drops_first "$window"
    made=$(date +%s%N)
    grow 10 3000
    finish
    past=$(($(date +%s%N) - made))
    awk -v past=$past -v window=$window 'BEGIN { exit !(past / 1e9 >= window) }' || break
  done
  mv d.$n.ht last.ht
  read -r end start <<<"$(live last.ht)"
  is_between "$start" 500000 600000
  [ "$end" -ge $((start + 30000)) ]
  [ "$("$HEAPTAPE" stat --json last.ht | jq .events)" -lt 50 ]
  "$HEAPTAPE" stat --by site --json last.ht >sites.json
  [ "$(jq -r '.sites[0].frames[0].function' sites.json)" = grow ]
  [ "$(jq '.sites[0].live_at_end_bytes' sites.json)" -eq 530000 ]
  "$HEAPTAPE" convert -q last.ht
  "$HEAPTAPE" replay -q -r 1 last.htw --json >replay.json
  [ "$(jq .preexisting_bytes replay.json)" -eq "$start" ]
}

@test "flight: resident memory above a limit causes one dump" {
  begin --trigger 'rss>64M'
  grow 20000 5000
  comes d.1.ht
  grow 100 5000
  sleep 0.5
  finish
  [ ! -e d.2.ht ]
  "$HEAPTAPE" stat -v d.1.ht | grep -qE "^dumped because +rss>64.0 MiB: process $program has [0-9.]+ MiB$"
}

@test "flight: a failure causes a dump, success does not" {
  skip_under_sanitizer
  run -3 "$HEAPTAPE" record --flight 1M --trigger 'exit!=0' -- sh -c 'exit 3'
  [ -s heaptape.1.ht ]
  [[ "$output" == *"(exit!=0: the program exited with status 3)"* ]]
  rm heaptape.1.ht
  run -137 "$HEAPTAPE" record --flight 1M --trigger 'exit!=0' -o k.ht -- sh -c 'kill -9 $$'
  [ -s k.ht ]
  [[ "$output" == *"(exit!=0: signal 9 terminated the program)"* ]]
  run -0 "$HEAPTAPE" record --flight 1M --trigger 'exit!=0' -- sh -c 'exit 0'
  [[ "$output" == *"no dump was written: no trigger fired"* ]]
  [ ! -e heaptape.1.ht ]
}

@test "flight: when the recorder is killed, its ring is written" {
  begin
  kill -USR2 $recorder
  comes d.1.ht
  kill -9 $recorder
  comes d.2.ht
  is_between "$(live d.2.ht | cut -d' ' -f1)" 500000 600000
  grow 10 10
  exec 7>&- 8<&-
  wait $recorder || true
  recorder=
}

@test "flight: --keep removes older dumps, --on-dump runs a command for each" {
  # shellcheck disable=SC2016
  begin --keep 2 --on-dump 'cat; echo "$1 $HEAPTAPE_TRIGGER" >>dumps'
  for n in 1 2 3; do
    kill -USR2 $recorder
    comes d.$n.ht
  done
  finish
  [ "$(ls d.*.ht)" = $'d.3.ht\nd.4.ht' ]
  [ "$(sed -n 2p dumps)" = "d.2.ht requested" ]
  [ "$(wc -l <dumps)" -eq 4 ]
}

@test "flight: --keep keeps dumps that wait for their command; one command runs at a time" {
  # shellcheck disable=SC2016
  begin --keep 1 --on-dump 'echo "begin $1" >>dumps; while [ ! -e go ]; do sleep 0.1; done; [ -s "$1" ] && echo "end $1" >>dumps; [ "$1" != d.2.ht ]'
  for n in 1 2 3; do
    kill -USR2 $recorder
    comes d.$n.ht
  done
  wait_until [ -s dumps ]
  [ "$(cat dumps)" = "begin d.1.ht" ]
  : >go
  finish
  [ "$(ls d.*.ht)" = d.4.ht ]
  [ "$(cat dumps)" = "$(for n in 1 2 3 4; do printf '%s d.%s.ht\n' begin $n end $n; done)" ]
  [ "$(grep -c "on-dump failed" err)" -eq 1 ]
  grep -q "heaptape: d.2.ht: --on-dump failed" err
}

@test "flight: the recorder notices the end of a command although SIGCHLD is ignored" {
  skip_under_sanitizer
  run -0 env --ignore-signal=CHLD "$HEAPTAPE" record --flight 1M --trigger exit --on-dump true -o d.ht -- ls
  [ -s d.ht ]
  [[ "$output" != *"failed"* ]]
}

@test "flight: without a number in the name, each dump replaces the previous one" {
  begin -o one.ht
  kill -USR2 $recorder
  comes one.ht
  grow 100 5000
  finish
  [ "$(echo ./*.ht)" = ./one.ht ]
  is_between "$(live one.ht | cut -d' ' -f1)" 1000000 1100000
  run -125 "$HEAPTAPE" record --flight 1M -o one.ht -- true
  [[ "$output" == *"one.ht: exists"* ]]
}

@test "flight: a running process" {
  skip_under_sanitizer
  mkfifo in out
  "$HEAPTAPE_PROGRAMS/grows" <in >out 2>err.program &
  program=$!
  exec 7>in 8<out
  grow 100 5000
  "$HEAPTAPE" record --pid $program --flight 8M --stacks=4 -o d.%n.ht 2>err &
  recorder=$!
  # The recording has begun when it has a call.
  records() { grow 1 16 && "$HEAPTAPE" ctl $program sync 2>/dev/null && has_events $program 1; }
  wait_until records
  "$HEAPTAPE" ctl $program dump
  grow 100 6000
  comes d.1.ht
  "$HEAPTAPE" ctl $program detach
  wait $recorder
  recorder=
  comes d.2.ht
  is_between "$(live d.2.ht | cut -d' ' -f1)" 600000 700000
  grow 10 10
  exec 7>&- 8<&-
  wait $program
}

@test "flight: a recorder without --flight refuses dumps and continues" {
  skip_under_sanitizer
  mkfifo in out
  "$HEAPTAPE" record -q -o t.ht -- "$HEAPTAPE_PROGRAMS/grows" <in >out 2>err &
  recorder=$!
  exec 7>in 8<out
  grow 100 5000
  program=$(pgrep -P $recorder -x grows)
  run -1 "$HEAPTAPE" ctl "$program" dump
  [ "$output" = "heaptape: $program: is not recorded with --flight" ]
  grow 100 5000
  finish
  [ "$status" -eq 0 ]
}

@test "flight: a process that its cgroup's limit kills" {
  skip_under_sanitizer
  group=/sys/fs/cgroup/memory/heaptape-test-$$
  { mkdir $group && echo 64M >$group/memory.limit_in_bytes; } 2>/dev/null || skip "no memory cgroup can be made here"
  echo 64M >$group/memory.memsw.limit_in_bytes 2>/dev/null || true
  run -137 "$HEAPTAPE" record --flight 64M --stacks=4 --trigger oom -o d.ht -- \
    sh -c "echo \$\$ >$group/cgroup.procs && sleep 2 && exec $HEAPTAPE_PROGRAMS/grows" <<<"1000000 10000"
  rmdir $group || true
  [[ "$output" =~ "(oom: the OOM killer killed a process of the cgroup)"|"(oom: SIGKILL terminated the program, probably by the OOM killer)" ]]
  "$HEAPTAPE" check -q d.ht
  [ "$("$HEAPTAPE" stat --by site --json d.ht | jq -r '.sites[0].frames[0].function')" = grow ]
  "$HEAPTAPE" convert -q d.ht -o d.htw
  "$HEAPTAPE" replay -q -r 1 d.htw >/dev/null
}

@test "flight: invalid options" {
  local option
  for option in '--flight 1' '--flight 0s' '--flight 1M,2M' '--flight x' '--flight 1M --trigger rss' \
    '--flight 1M --trigger rss>0' '--flight 1M --trigger rss+20%' '--flight 1M --trigger cgroup>100%' \
    '--flight 1M --trigger exit,,oom' '--trigger exit' '--keep 2' '--on-dump true' '--flight 1M --aggregate' \
    '--flight 1M -F json' '--flight 1M --max-size 1M'; do
    # shellcheck disable=SC2086
    run -2 "$HEAPTAPE" record $option -- true
    [ "${#lines[@]}" -eq 2 ]
    [[ "${lines[0]}" == "heaptape: "* ]]
  done
  run -125 "$HEAPTAPE" record --flight 1M -o - -- true
  [[ "$output" == *"is not a regular file"* ]]
}
