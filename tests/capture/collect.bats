load trace

# alone COMMAND...: records into $PWD/spool without a recorder; the reports of the program go to
# `told`.
alone() {
  mkdir -p spool
  status=0
  env HEAPTAPE_SPOOL="$PWD/spool" LD_PRELOAD="$HEAPTAPE_BUILD/src/capture/libheaptape.so" "$@" >told 2>err || status=$?
}

collect() {
  "$HEAPTAPE" record -q -f --collect spool -o t.ht
  "$HEAPTAPE" check -q t.ht
  "$HEAPTAPE_PROGRAMS/trace_lines" t.ht >lines
  "$HEAPTAPE" convert -q -f -o t.htw t.ht
}

@test "exit, _exit, abort and SIGKILL" {
  skip_under_sanitizer
  for end in exit:0 _exit:3 abort:134 kill:137; do
    rm -rf spool
    alone "$HEAPTAPE_PROGRAMS/ends" "${end%:*}" 123456
    [ "$status" -eq "${end#*:}" ]
    collect
    [ "$(count_lines | tr '\n' ,)" = "free 5050 123456,malloc 5050 123456," ]
  done
}

@test "processes and threads; collecting again" {
  skip_under_sanitizer
  alone "$HEAPTAPE_PROGRAMS/forks" fork nested vfork spawn clone 10
  [ "$status" -eq 0 ]
  collect
  counts_as_told
  cp lines before
  collect
  cmp before lines
}

@test "process 1 of a container that is started twice, as another user" {
  skip_under_sanitizer
  for_other_users tests/ends
  unshare -mpfiu --mount-proc true 2>/dev/null || skip "no namespaces"
  local nobody="setpriv --reuid nobody --regid nogroup --clear-groups"
  chmod o+x .
  mkdir lib && cp "$HEAPTAPE_BUILD/src/capture/libheaptape.so" "$HEAPTAPE_PROGRAMS/ends" lib
  install -d -m 700 -o nobody spool
  install -d -m 777 out
  for _ in 1 2; do
    unshare -mpfiu --mount-proc sh -c "mount --bind . /mnt && mount -t tmpfs none /dev/shm && cd /mnt/out && exec $nobody \
      --no-new-privs --bounding-set=-all env HEAPTAPE_SPOOL=/mnt/spool LD_PRELOAD=/mnt/lib/libheaptape.so \
      /mnt/lib/ends exit 1000"
  done
  $nobody "$HEAPTAPE" record -q --collect spool -o out/t.ht
  "$HEAPTAPE" stat --json out/t.ht >stat.json
  python3 -c 'import json
p = json.load(open("stat.json"))["processes"]
assert [q["pid"] for q in p] == [1, 1], p
assert p[0]["events"] == p[1]["events"] == 2000, p'
}

@test "two consecutive programs, and their pauses" {
  skip_under_sanitizer
  alone "$HEAPTAPE_PROGRAMS/control" phases 3 20
  [ "$status" -eq 0 ]
  mv told first
  alone "$HEAPTAPE_PROGRAMS/control" start
  [ "$status" -eq 0 ]
  # The second program starts recording, not paused.
  echo "$(cat first) malloc 6059 1000 realloc 6059 1000 free 6059 1000" | xargs -n 3 >>told
  collect
  counts_as_told
  [ "$("$HEAPTAPE_PROGRAMS/trace_lines" -p t.ht | wc -l)" -eq 2 ]
}

@test "threads in parallel that exchange blocks" {
  skip_under_sanitizer
  alone "$HEAPTAPE_PROGRAMS/threads" 20000
  [ "$status" -eq 0 ]
  collect
  counts_as_told
  # The trace is sliced by time: the converter sees every allocation before its free.
  "$HEAPTAPE" stat --json t.ht >stat
  grep -q '"unmatched_frees": 0' stat
  [ "$(grep -c '"unmatched_frees": [1-9]' stat)" -eq 0 ]
}

# rounds: how often the program `control loop` has slept. It sleeps after every 60 calls.
rounds() {
  awk '/^voluntary/ { print $2 }' "/proc/$pid/status"
}

# works: the program has made calls since it was loaded, when it may have slept for other reasons.
works() {
  [ "$(rounds)" -ge $((loaded + 50)) ]
}

@test "a running process must be stopped first" {
  skip_under_sanitizer
  mkdir spool
  env HEAPTAPE_SPOOL="$PWD/spool" LD_PRELOAD="$HEAPTAPE_BUILD/src/capture/libheaptape.so" \
    "$HEAPTAPE_PROGRAMS/control" loop >told 3>&- &
  pid=$!
  wait_until "$HEAPTAPE" ctl $pid status
  heaptape record --collect spool -o t.ht
  fails_with 1 "spool: process $pid is still running; stop it with 'heaptape ctl $pid stop'"
  [ ! -e t.ht ]
  loaded=$(rounds)
  wait_until works
  "$HEAPTAPE" ctl $pid sync
  heaptape ctl $pid reset
  fails_with 1 "$pid: "
  "$HEAPTAPE" ctl $pid stop
  collect
  kill $pid
  wait $pid
  [ "$(count_lines | wc -l)" -eq 3 ]
}

@test "folders that cannot be collected" {
  heaptape record --collect nowhere -o t.ht
  fails_with 1 "nowhere: No such file or directory"
  mkdir empty
  heaptape record --collect empty -o t.ht
  fails_with 1 "empty: contains no recording"
  : >empty/session
  heaptape record --collect empty -o t.ht
  fails_with 1 "empty/session: is not a session"
  head -c 65536 /dev/urandom >empty/session
  heaptape record --collect empty -o t.ht
  fails_with 1 "empty/session: is not a session"
  heaptape record --collect empty -o t.ht -- ls
  usage_fails "--collect takes no PROGRAM"
}

@test "the session of a recorder cannot be collected" {
  skip_under_sanitizer
  mkfifo go
  "$HEAPTAPE" record -q -o t.ht -- sh -c 'echo "$HEAPTAPE_SPOOL" >dir; read -r _ <go' &
  wait_until [ -s dir ]
  heaptape record --collect "$(cat dir)" -o u.ht
  fails_with 1 "a recorder uses this directory"
  echo >go
  wait $!
  # The directory is removed, and a later program must not create it again.
  env HEAPTAPE_SPOOL="$(cat dir)" LD_PRELOAD="$HEAPTAPE_BUILD/src/capture/libheaptape.so" ls
  [ ! -e "$(cat dir)" ]
}
