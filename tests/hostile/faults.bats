# The Nth call of malloc, mmap, pread, writev, rename, … fails in heaptape itself. The program must
# have the same output and status as without heaptape. The trace must be complete, or valid and
# reported as truncated, or absent. HEAPTAPE_TEST_FAULTS=all tries every N up to 120.
# shellcheck disable=SC2030,SC2031 # bats runs each test in a separate shell
load hostile

faults='memory:ENOMEM mmap:ENOMEM ftruncate:ENOSPC fallocate:ENOSPC fallocate:EINTR rename:EIO renameat:EIO linkat:ENOSPC
  mkdir:ENOSPC fork:EAGAIN thread:EAGAIN open:EMFILE open:EINTR openat:EMFILE openat:ENOMEM fopen:EMFILE opendir:EMFILE pidfd:EMFILE read:EIO read:EINTR read:short
  pread:EIO pread:EINTR pread:short write:EIO write:EINTR write:short writev:EIO writev:EINTR writev:ENOSPC writev:short'

setup_file() {
  export PATH=$HEAPTAPE_PROGRAMS:$HEAPTAPE_PROGRAMS/hostile:$PATH
}

# Writes a program that starts threads, a fork child of a fork child, and a program that aborts. The
# shell then exits with its own status.
write_program() {
  cat >program.sh <<'SH'
known threads 100 2
known fork 50 2
{ known abort 50; } 2>/dev/null
echo "status $?"
exit 7
SH
}

# fault FUNCTION:HOW:N ARG...: runs heaptape with that fault; sets $status, writes out and err.
# Returns false if heaptape made fewer than N calls.
fault() {
  local what=$1
  shift
  rm -f met
  status=0
  HEAPTAPE_FAULT=$what HEAPTAPE_FAULT_MET=met LD_PRELOAD=$HEAPTAPE_PROGRAMS/hostile/libtest-faults.so \
    timeout -k 1 120 "$HEAPTAPE" "$@" >out 2>err || status=$?
  echo "$what $1: status $status, output '$(head -n 6 out)', $(cat err)"
  [ -e met ]
}

# Every line is a message of heaptape.
only_messages() {
  ! grep -v '^heaptape: ' err || false
}

# each_fault CHECK FUNCTION:HOW...: runs CHECK FUNCTION:HOW:N for each N until there are no more
# calls.
each_fault() {
  local check=$1 numbers="1 2 3 4 7 15 40" what n
  [ "$HEAPTAPE_TEST_FAULTS" != all ] || numbers=$(seq 120)
  for what in $faults; do
    for n in $numbers; do
      "$check" "$what:$n"
      [ -e met ] || break
    done
  done
}

recording_with() {
  rm -f t.ht
  fault "$1" record -o t.ht -- sh program.sh || return 0
  only_messages
  case $status in
    7) cmp out untraced ;;
    # The program was not started, or ran without a recorder.
    125) [ ! -s out ] || cmp out untraced ;;
    *) false ;;
  esac
  said=$(grep -c -v '^heaptape: recorded' err) || true
  # An existing trace is readable, and complete unless the failure is reported.
  if [ -e t.ht ]; then
    "$HEAPTAPE" check -q t.ht 2>checked || grep 'cut off' checked
  fi
  if [ "$said" -eq 0 ]; then
    in_trace=$(known_calls)
    echo "$in_trace of $recorded calls"
    [ "$in_trace" -eq "$recorded" ]
  else
    failed=$((failed + 1))
  fi
}

@test "record with a call that fails" {
  skip_under_sanitizer
  local failed=0 recorded said in_trace
  write_program
  status=0
  sh program.sh >untraced || status=$?
  [ "$status" -eq 7 ]
  fault none:EIO:1 record -o t.ht -- sh program.sh || [ "$status" -eq 7 ]
  recorded=$(known_calls)
  each_fault recording_with
  [ "$failed" -ge 10 ]
}

@test "record without a second thread" {
  skip_under_sanitizer
  local recorded
  write_program
  fault none:EIO:1 record -q -o t.ht -- sh program.sh || [ "$status" -eq 7 ]
  recorded=$(known_calls)
  fault thread:EAGAIN:1:1000 record -q -f -o t.ht -- sh program.sh
  [ "$status" -eq 7 ]
  [ ! -s err ]
  [ "$(known_calls)" -eq "$recorded" ]
}

# The recorder is stopped while the program runs, and finds all spools after the program has ended.
record_late() {
  rm -f met t.ht out stopped
  (
    export HEAPTAPE_FAULT=openat:ENOMEM:$1 HEAPTAPE_FAULT_MET=met HEAPTAPE_FAULT_AFTER=stopped
    export LD_PRELOAD=$HEAPTAPE_PROGRAMS/hostile/libtest-faults.so
    exec timeout -k 1 120 "$HEAPTAPE" record -o t.ht -- sh late.sh >out 2>err
  ) &
  until grep -qs "^status" out || ! kill -0 $! 2>/dev/null; do sleep 0.01; done
  pkill -CONT -x -P $! heaptape || true
  status=0
  wait $! || status=$?
  echo "openat:$1: status $status, $(cat err)"
}

@test "a spool that cannot be opened in the last pass is tried again" {
  skip_under_sanitizer
  local n recorded
  write_program
  { echo 'kill -STOP $PPID; >stopped' && cat program.sh; } >late.sh
  record_late 1000
  [ ! -e met ]
  recorded=$(known_calls)
  for n in $(seq 30); do
    record_late "$n"
    [ -e met ] || break
    [ "$status" -eq 7 ]
    [ "$(known_calls)" -eq "$recorded" ]
    [ "$(wc -l <err)" -eq 1 ]
  done
  [ "$n" -gt 5 ]
}

@test "a spool that can never be opened is reported" {
  skip_under_sanitizer
  local n
  write_program
  { echo 'kill -STOP $PPID; >stopped' && cat program.sh; } >late.sh
  for n in 1 2 3 4 5; do
    record_late "$n:1000"
    grep "the recorder had no memory or file descriptor left" err
    ! grep "libheaptape.so never started in it;" err || false
  done
}

conversion_with() {
  echo old >t.htw
  fault "$1" convert -q -f -o t.htw good.ht || return 0
  only_messages
  [ -z "$(find . -name '*.tmp-*')" ]
  if [ "$status" -eq 0 ]; then
    cmp t.htw good.htw
  else
    [ "$status" -eq 1 ]
    [ "$(wc -l <err)" -eq 1 ]
    [ "$(cat t.htw)" = old ]
    failed=$((failed + 1))
  fi
}

@test "convert with a call that fails" {
  skip_under_sanitizer
  local failed=0
  write_program
  "$HEAPTAPE" record -q -o good.ht -- sh program.sh || true
  "$HEAPTAPE" convert -q -o good.htw good.ht
  each_fault conversion_with
  [ "$failed" -ge 10 ]
}
