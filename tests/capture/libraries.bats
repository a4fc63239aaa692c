load trace

@test "calls in constructors and destructors of a library, at load and at exit" {
  skip_under_sanitizer
  record env LD_PRELOAD="$HEAPTAPE_BUILD/src/capture/libheaptape.so:$HEAPTAPE_PROGRAMS/libat_load.so" \
    "$HEAPTAPE_PROGRAMS/ends" exit 10
  echo "malloc 5050 10
free 5050 10" >>told
  counts_as_told
}

@test "a library that is loaded and unloaded repeatedly" {
  skip_under_sanitizer
  record "$HEAPTAPE_PROGRAMS/loads" "$HEAPTAPE_PROGRAMS/libat_load.so" 50
  [ "$status" -eq 0 ]
  counts_as_told
  # The trace includes the calls of the loader, and of dlsym for a missing symbol: no free is of an
  # unknown block.
  awk '$10 != "0" { live[$10] = 1; next } $6 != "0" && !live[$6] { print; bad = 1 } { delete live[$6] } END { exit bad }' lines
  [ "$(awk '$5 == "malloc" || $5 == "calloc"' lines | wc -l)" -gt 300 ]
}

@test "an LD_PRELOAD of the program is kept" {
  skip_under_sanitizer
  LD_PRELOAD=$HEAPTAPE_PROGRAMS/libat_load.so record "$HEAPTAPE_PROGRAMS/ends" exit 10
  grep -q 'malloc 25230 1' told
}

@test "a program runs as usual without a session" {
  skip_under_sanitizer
  for dir in '' /nonexistent relative .; do
    HEAPTAPE_SPOOL=$dir LD_PRELOAD=$HEAPTAPE_BUILD/src/capture/libheaptape.so run "$HEAPTAPE_PROGRAMS/ends" exit 1000
    [ "$status" -eq 0 ]
    [ -z "$output" ]
  done
}

@test "an allocator in a library that has only the older hash table of symbols" {
  skip_under_sanitizer
  cd "$BATS_TEST_TMPDIR" || return
  cat >old.c <<'END'
#include <stddef.h>
#include <unistd.h>
void *__libc_malloc(size_t size);
static volatile int calls;
void *malloc(size_t size) { calls++; return __libc_malloc(size); }
__attribute__((destructor)) static void end(void)
{
  if (calls > 5) (void)!write(2, "used\n", 5);
}
END
  gcc -w -O2 -fPIC -shared -Wl,--hash-style=sysv old.c -o old.so
  record env LD_PRELOAD="$HEAPTAPE_BUILD/src/capture/libheaptape.so:$PWD/old.so" \
    "$HEAPTAPE_PROGRAMS/ends" exit 10
  grep -qx used err
}
