# record --aggregate writes figures instead of events.
load trace

# begin OPTION...: starts `grows` under a recorder that rewrites a.hta every second.
begin() {
  mkfifo in out
  "$HEAPTAPE" record -q --aggregate=1 --stacks=4 -o a.hta "$@" -- "$HEAPTAPE_PROGRAMS/grows" <in >out 2>err &
  recorder=$!
  exec 7>in 8<out
  grow 1000 5000
}

teardown() {
  show_failure
  exec 7>&- 8<&-
  [ -z "${recorder:-}" ] || kill -9 "$recorder" 2>/dev/null || true
}

# have_equal N FIGURES [OPTION...]: trace and aggregate have equal figures (by jq), more than N of
# them.
have_equal() {
  local least=$1 figures=$2 file
  shift 2
  for file in t.ht a.hta; do
    "$HEAPTAPE" stat --json "$@" $file | jq -c "$figures" | sort >$file.figures
  done
  [ "$(wc -l <t.ht.figures)" -gt "$least" ]
  diff t.ht.figures a.hta.figures
}

# live_is BYTES: the file has at least BYTES live, and less than 1 MB more.
live_is() {
  local live
  live=$("$HEAPTAPE" stat --json a.hta 2>/dev/null | jq .live_at_end_bytes)
  [ "${live:-0}" -ge "$1" ] && [ "$live" -lt $(($1 + 1000000)) ]
}

@test "aggregate: totals equal those of a trace of the program" {
  skip_under_sanitizer
  local of='.by_kind, .threads, .requested_bytes, .peak_live_bytes, .live_at_end_bytes, .live_at_end_blocks, .lost_records'
  "$HEAPTAPE" record -q -o t.ht --stacks=8 -- "$HEAPTAPE_PROGRAMS/calls" >/dev/null
  "$HEAPTAPE" record -q -o a.hta --aggregate --stacks=8 -- "$HEAPTAPE_PROGRAMS/calls" >/dev/null
  "$HEAPTAPE" stat --json t.ht | jq "$of" >trace.json
  "$HEAPTAPE" stat --json a.hta | jq "$of" >aggregate.json
  diff trace.json aggregate.json
  # Numbers and addresses of sites differ from run to run.
  have_equal 5 '.sites[] | [.allocs, .allocated_bytes, .live_at_end_bytes]' --by site --top 0
}

@test "aggregate: call sites are sampled by default; --stacks changes that" {
  skip_under_sanitizer
  "$HEAPTAPE" record -q -o a.hta --aggregate -- "$HEAPTAPE_PROGRAMS/calls" >/dev/null
  [ "$("$HEAPTAPE" stat --by site --json a.hta | jq .stack_sample_bytes)" -eq $((512 * 1024)) ]
}

@test "aggregate: the file is rewritten while the program runs, and top reads it" {
  skip_under_sanitizer
  begin --period 1
  wait_until live_is 5000000
  heaptape stat -v a.hta
  has "$output" "a.hta: aggregate, recording in progress"
  heaptape top -n 1 a.hta
  grep -Eq '^grows \(process [0-9]+\): recording ' <<<"$output"
  grep -Eq '^ +4\.8 MiB +1 000 .* grow$' <<<"$output"
  grow 1000 5000
  wait_until live_is 10000000
  exec 7>&- 8<&-
  wait "$recorder"
  recorder=
  live_is 10000000
  heaptape stat --json a.hta
  [ "$(jq .partial <<<"$output")" = false ]
  # At least a second has passed between the two allocations.
  [ "$(jq '.growth.live_bytes | length' <<<"$output")" -ge 2 ]
  [ "$(jq '.growth.live_bytes[0]' <<<"$output")" -eq 0 ]
  [ -z "$(find . -name "a.hta.tmp-*")" ]
}

@test "aggregate: the last file is complete when the recorder is killed, and the program continues" {
  skip_under_sanitizer
  begin
  wait_until live_is 5000000
  kill -9 "$recorder"
  wait "$recorder" || true
  recorder=
  live_is 5000000
  grow 10 10
  # The process that writes the file reads the end of file from the recorder.
  is_cut_off() { heaptape stat a.hta && has "$stderr" "the recorder was killed before the recording ended"; }
  wait_until is_cut_off
}

@test "aggregate: the process that writes the file is killed" {
  skip_under_sanitizer
  begin
  wait_until live_is 5000000
  kill -9 "$(pgrep -P "$recorder" heaptape)"
  grow 10 10
  exec 7>&- 8<&-
  local status=0
  wait "$recorder" || status=$?
  recorder=
  [ "$status" -eq 125 ]
  grep -q 'a.hta: the process that writes the log was killed by signal 9' err
  live_is 5000000
}

@test "aggregate: a fork child, and other processes, each have separate live bytes" {
  skip_under_sanitizer
  "$HEAPTAPE" record -q -o t.ht -- "$HEAPTAPE_PROGRAMS/forks" fork vfork spawn exec >/dev/null
  "$HEAPTAPE" record -q -o a.hta --aggregate -- "$HEAPTAPE_PROGRAMS/forks" fork vfork spawn exec >/dev/null
  have_equal 1 '.processes[] | [.argv, .events]'
}

@test "aggregate: many processes: the totals include all" {
  skip_under_sanitizer
  "$HEAPTAPE" record -q -o a.hta --aggregate -- sh -c 'for i in $(seq 80); do "$0" </dev/null; done' "$HEAPTAPE_PROGRAMS/grows"
  heaptape stat --json a.hta
  [ "$(jq '.processes | length' <<<"$output")" -eq 64 ]
  [ "$(jq '.other_processes' <<<"$output")" -ge 16 ]
  [ "$(jq '.events' <<<"$output")" -gt "$(jq '[.processes[].events] | add' <<<"$output")" ]
}

@test "aggregate: a full disk: the old file is kept, and the program continues" {
  skip_under_sanitizer
  [ "$(id -u)" -eq 0 ] || skip "only root may mount"
  unshare -m true 2>/dev/null || skip "no mount namespaces"
  mkdir small
  run unshare -m sh -c '
    mount -t tmpfs -o size=64k none small || exit 77
    "$1" record -q --aggregate --stacks=4 -o small/a.hta -- "$2" >/dev/null || exit 1
    dd if=/dev/zero of=small/fill bs=4k count=100 2>/dev/null
    cp small/a.hta before || exit 1
    "$1" record -f --aggregate --stacks=4 -o small/a.hta -- "$2" 2>err >said
    echo "status $?"
    cmp small/a.hta before && "$1" stat small/a.hta >/dev/null && ls small' sh "$HEAPTAPE" "$HEAPTAPE_PROGRAMS/calls"
  [ "$status" -ne 77 ] || skip "cannot mount a small file system"
  has "$output" "status 125"
  grep -q 'a.hta.*No space left' err
  [ "$(grep -c 'a.hta: small/a.hta:' err)" -eq 0 ]
  [ "$(tail -n 2 <<<"$output")" = "a.hta
fill" ]
  [ -s said ]
}

@test "aggregate: a running process" {
  skip_under_sanitizer
  skip_without_ptrace
  LD_BIND_NOW=1 "$HEAPTAPE_PROGRAMS/service" 4 >out 3>&- &
  local service=$!
  wait_until grep -qsx ready out
  "$HEAPTAPE" record -o a.hta --aggregate --pid "$service" 2>err 3>&- &
  recorder=$!
  wait_until has_events "$service" 1001
  "$HEAPTAPE" ctl "$service" detach
  wait "$recorder"
  recorder=
  kill -USR1 "$service"
  wait "$service"
  heaptape stat --json a.hta
  [ "$(jq .events <<<"$output")" -gt 1000 ]
  [ "$(jq '.processes[0].pid' <<<"$output")" -eq "$service" ]
}

@test "aggregate: usage" {
  heaptape record --aggregate --format mtrace true
  usage_fails "--aggregate cannot be combined with"
  heaptape record --aggregate -o - true
  fails_with 125 "-: is not a regular file"
  : >a.hta
  heaptape record --aggregate -o a.hta true
  fails_with 125 "a.hta: exists"
  heaptape record --aggregate=0 true
  [ "$status" -eq 2 ]
}
