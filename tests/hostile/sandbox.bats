load hostile

setup_file() {
  export PATH=$HEAPTAPE_PROGRAMS/hostile:$PATH
}

@test "seccomp's strict mode" {
  skip_under_sanitizer
  for stacks in "" --stacks --stacks=sample:1; do
    records $stacks strict
    [ "$status" -eq 0 ]
    [ "$output" = alive ]
    has "$stderr" "20 records were lost"
  done
}

@test "a filter that kills at any system call except the program's own" {
  skip_under_sanitizer
  records filter 1000000
  [ "$status" -eq 0 ]
  [ "$output" = alive ]
  [ "$(events)" -eq 2000002 ]
  records closer seccompkill
  [ "$output" = 301000 ]
  [ "$(events)" -eq 602000 ]
}

@test "the time-stamp counter is forbidden, also for child processes" {
  skip_under_sanitizer
  records sh -c 'tsc; exec tsc'
  [ "$status" -eq 0 ]
  [ "$output" = "alive
alive" ]
  has "$stderr" "the program disabled the time-stamp counter"
  # Without a recording, the counter is never read.
  LD_PRELOAD=$HEAPTAPE_BUILD/src/capture/libheaptape.so tsc
  LD_PRELOAD=$HEAPTAPE_BUILD/src/capture/libheaptape.so strict
}

@test "big blocks are not measured behind a filter" {
  skip_under_sanitizer
  for how in prctl seccomp; do
    records bigfilter $how
    [ "$status" -eq 0 ]
    [ "$output" = alive ]
    [ "$("$HEAPTAPE" dump -k malloc -k calloc -k free t.ht | grep -c 1048576)" -ge 4 ]
    [ "$("$HEAPTAPE" dump -k heaptape.residency t.ht | wc -l)" -eq 0 ]
  done
}

# Firefox installs a NULL filter to test whether the kernel supports filters.
@test "a filter that the kernel refuses has no effect" {
  skip_under_sanitizer
  records manythreads 60 refused
  [ "$status" -eq 0 ]
  [ "${#stderr_lines[@]}" -eq 1 ]
  [ "$(events)" -ge $((2 * 50 * 60)) ]
}

@test "more threads in a sandbox than chunks: the program continues, and record explains the loss" {
  skip_under_sanitizer
  records manythreads 60 privileges
  [ "$status" -eq 0 ]
  has "$output" "60 threads"
  has "$stderr" "the sandbox of the program leaves no memory for more threads"
}

# Firefox filters all threads with syscall(SYS_seccomp, ...), and its threads exit later.
@test "threads, children and exit behind a filter that forbids every other system call" {
  skip_under_sanitizer
  for options in "-p -t" "-p -f" "-p -e" "-p -t -f -e"; do
    confined $options || skip "libc makes other system calls"
    for how in "" --stacks "--usable --maps"; do
      echo "confined $options, record $how"
      records $how confined $options
      [ "$status" -eq 0 ]
      [ "$output" = alive ]
      case $options in
        *-f*) has "$stderr" "(confined) was not recorded: its system calls are filtered" ;;
        *) [ "${#stderr_lines[@]}" -eq 1 ] ;;
      esac
    done
  done
  [ "$("$HEAPTAPE" dump -k malloc t.ht | grep -c malloc)" -ge 8400 ]
  [ "$("$HEAPTAPE" dump -k thread.end t.ht | grep -c thread.end)" -ge 80 ]
}

@test "root filters without PR_SET_NO_NEW_PRIVS" {
  skip_under_sanitizer
  confined -t -f -e || skip "only root may install the filter"
  records confined -t -f -e
  [ "$status" -eq 0 ]
  [ "$output" = alive ]
  has "$stderr" "(confined) was not recorded: its system calls are filtered"
}

@test "PR_SET_NO_NEW_PRIVS without a filter: later threads and children have call paths" {
  skip_under_sanitizer
  records --stacks confined -n -p -t -f -e
  [ "$status" -eq 0 ]
  has "$stderr" "events of 3 processes"
  for pid in $("$HEAPTAPE" stat --json t.ht | jq '.processes[].pid'); do
    "$HEAPTAPE" convert -q -f --pid "$pid" -o t.htw t.ht
    "$HEAPTAPE" stat --by site t.htw | grep -A1 'work (confined)' >paths
    grep -qE 'start_thread|main \(confined\)' paths
  done
}
