# The Nth call of malloc, open, read, … fails in heaptape: record and convert succeed, or end with one line and a status of
# theirs; the program's output stays as it is. HEAPTAPE_TEST_FAULTS=all tries every N up to 120.
load hostile

setup_file() {
  export PATH=$HEAPTAPE_PROGRAMS/hostile:$PATH
}

# fault WHAT:N ARG...: heaptape, with that fault. A status of its own, and one line that says why.
fault() {
  local what=$1 status=0
  shift
  HEAPTAPE_FAULT=$what LD_PRELOAD=$HEAPTAPE_PROGRAMS/hostile/libtest-faults.so timeout -k 1 20 "$HEAPTAPE" "$@" >out 2>err || status=$?
  echo "$what $1: status $status, output '$(head -n 3 out)', $(head -n 3 err)"
  case $status in
    0) ;;
    1 | 125) [ "$(grep -c . err)" -eq 1 ] && grep -q '^heaptape: ' err && failed=$((failed + 1)) ;;
    *) false ;;
  esac
}

@test "record and convert with a call that fails" {
  skip_under_sanitizer
  local numbers="1 2 3 4 7 15 40" failed=0
  [ "$HEAPTAPE_TEST_FAULTS" != all ] || numbers=$(seq 120)
  "$HEAPTAPE" record -q -o good.ht -- known threads 500 2
  for what in memory mmap open fork thread read write read-interrupted write-interrupted read-short write-short; do
    for n in $numbers; do
      rm -f t.ht
      fault "$what:$n" record -q -o t.ht -- known threads 500 2
      # A program that was started ends as it does untraced.
      [ "$(cat out)" = 1000 ] || { [ ! -s out ] && [ -s err ]; }
      fault "$what:$n" convert -q -f -o t.htw good.ht
    done
  done
  # Some have met their call.
  [ "$failed" -ge 10 ]
}
