load trace

# run_way WAY...
run_way() {
  record "$HEAPTAPE_PROGRAMS/forks" "$@"
  [ "$status" -eq 0 ]
  counts_as_told
}

@test "fork" {
  skip_under_sanitizer
  run_way fork fork
}

@test "nested fork" {
  skip_under_sanitizer
  run_way nested
}

@test "fork while other threads record" {
  skip_under_sanitizer
  run_way threads
}

@test "vfork" {
  skip_under_sanitizer
  run_way vfork
}

@test "posix_spawn" {
  skip_under_sanitizer
  run_way spawn spawn
}

@test "raw clone" {
  skip_under_sanitizer
  run_way clone clone
}

@test "a chain of 20 exec" {
  skip_under_sanitizer
  run_way 20
}

@test "fork in a program that cleared its environment" {
  skip_under_sanitizer
  run_way bare
}

@test "fork in a program that closed all file descriptors" {
  skip_under_sanitizer
  run_way closed
}

@test "all ways in one program, with their parents" {
  skip_under_sanitizer
  run_way fork nested vfork spawn clone
  "$HEAPTAPE_PROGRAMS/trace_lines" -p t.ht >processes
  parent=$(awk 'NR == 1 { print $1 }' processes)
  [ "$(awk -v parent="$parent" '$2 == parent' processes | wc -l)" -ge 3 ]
}

@test "limits of file size, address space and open files" {
  skip_under_sanitizer
  for limit in '-f 100000' '-v 400000' '-n 20'; do
    record bash -c "ulimit $limit; exec '$HEAPTAPE_PROGRAMS/ends' exit 100000"
    [ "$status" -eq 0 ]
    [ "$(count_lines | tr '\n' ,)" = "free 5050 100000,malloc 5050 100000," ]
  done
  # The limit of file sizes is too small for a separate spool.
  record bash -c "ulimit -f 10; exec '$HEAPTAPE_PROGRAMS/ends' exit 1000"
  [ "$status" -eq 0 ]
  [ "$(count_lines | tr '\n' ,)" = "free 5050 1000,malloc 5050 1000," ]
}

@test "a limit of the data segment: a failed mapping is tried once, and named" {
  skip_under_sanitizer
  printf '#include <stdio.h>\n#include <stdlib.h>\nint main(void) { int n = 0; for (int i = 0; i < 20000; i++) { void *volatile p = malloc(100); n += !p; free(p); } printf("%%d failed\\n", n); return 3; }\n' >calls.c
  gcc -fno-builtin -O1 -o calls calls.c
  bats_require_minimum_version 1.5.0
  local refused=0 kib
  for kib in 350 360 370 380 390 400 600 1000 4000; do
    bash -c "ulimit -d $kib; exec ./calls" >want || [ $? -eq 3 ] || continue
    heaptape record -f -o t.ht -- bash -c "ulimit -d $kib; exec ./calls"
    [ "$status" -ne 127 ] || continue
    [ "$status" -eq 3 ]
    if [[ "$stderr" == *"Cannot allocate memory"* ]]; then
      refused=$((refused + 1))
      # Each call is counted, including calls by the C library.
      grep -qE "^heaptape: process [0-9]+ \(calls\) was not recorded: its spool could not be created: Cannot allocate memory \(its data segment is limited to $kib KiB\) \(4000[0-9] calls\)" <<<"$stderr"
    else
      expect "one line" [ "${#stderr_lines[@]}" -eq 1 ]
      [ "$("$HEAPTAPE" dump t.ht | grep -c ' malloc(100) = ')" -eq 20000 ]
    fi
  done
  # From this limit on, a program has enough memory.
  heaptape record -f -o t.ht -- bash -c "ulimit -d 1000; exec ./calls"
  [ "$output" = "0 failed" ]
  [ "$refused" -gt 0 ] || skip "no limit left memory for the program and none for the state of the process"
}

@test "limits of the recorder are named, and the recorder ends at once" {
  bats_require_minimum_version 1.5.0
  skip_under_sanitizer
  run --separate-stderr bash -c 'ulimit -d 1000; exec "$0" record -f -o t.ht -- true' "$HEAPTAPE"
  fails_with 125 "(the data segment is limited to 1000 KiB)"
  run --separate-stderr bash -c 'ulimit -f 8; exec "$0" record -f -o t.ht -- ls' "$HEAPTAPE"
  fails_with 125 "ls: nothing was recorded: " "its file size was limited to 8 KiB"
  run --separate-stderr bash -c 'ulimit -f 64; exec "$0" record -f -o t.ht -- ls' "$HEAPTAPE"
  fails_with 125 "ls: nothing was recorded: its spool could not be created: File too large (its file size is limited to 64 KiB)"
}

@test "a program that limits its address space and uses all of it" {
  skip_under_sanitizer
  run_way limit
}

@test "fork in a program that may open and write no more files, more often than the reserve allows at once" {
  skip_under_sanitizer
  record sh -c "'$HEAPTAPE_PROGRAMS/forks' rights | cat"
  [ "$status" -eq 0 ]
  counts_as_told
}

# A program without LD_PRELOAD support.
make_static() {
  # shellcheck disable=SC2016
  printf '%s\n' '#include <stdio.h>' '#include <stdlib.h>' '#include <unistd.h>' \
    'int main(int argc, char **argv) { if (argc > 2) return puts("done") < 0; sleep(getenv("LONG") ? 4 : 1);' \
    '  return execl(argv[1], argv[1], "again", "once", (char *)0); }' >static.c
  cc -static -o static static.c || skip "no static C library"
}

@test "exec of a program that cannot be recorded is reported" {
  skip_under_sanitizer
  make_static
  heaptape record -o t.ht -- sh -c 'ls / >/dev/null; LONG=1 exec ./static ./static'
  [ "$status" -eq 0 ]
  has "$stderr" "(static) was not recorded: is statically linked"
  # A process that executes a program which can be recorded is recorded again.
  heaptape record -f -o t.ht -- sh -c 'ls / >/dev/null; exec ./static /bin/ls'
  [[ "$stderr" != *"(ls) was not recorded"* ]]
  [ "$("$HEAPTAPE" stat --json t.ht | jq '[.processes[] | select(.argv[1] == "again")] | length')" -eq 1 ]
}

@test "exec after chroot is reported" {
  skip_under_sanitizer
  [ "$(id -u)" -eq 0 ] || skip "only root may"
  make_static
  mkdir root
  mv static root
  LONG=1 heaptape record -o t.ht -- perl -e 'fork and do { wait; exit 0 }; my @x = map { "x$_" } 1..1000; chroot "root" or die; chdir "/"; exec "/static", "/static"'
  [ "$status" -eq 0 ]
  has "$stderr" "(static) was not recorded: is statically linked"
}

@test "fork after chroot, and after setuid" {
  skip_under_sanitizer
  [ "$(id -u)" -eq 0 ] || skip "only root may"
  run_way chroot
  run_way nobody
}
