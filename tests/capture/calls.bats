load trace

@test "every C call, in order, with all its arguments; errno is preserved" {
  skip_under_sanitizer
  record "$HEAPTAPE_PROGRAMS/calls"
  [ "$status" -eq 0 ]
  as_told
}

@test "the same on other allocators" {
  skip_under_sanitizer
  ran=0
  for name in jemalloc tcmalloc_minimal mimalloc; do
    library=$(ldconfig -p | sed -n "s|.*lib$name\.so\.[0-9.]* .*=> ||p" | head -n 1)
    [ -n "$library" ] || continue
    record_options="-a $library" record "$HEAPTAPE_PROGRAMS/calls" other
    [ "$status" -eq 0 ]
    as_told
    "$HEAPTAPE_PROGRAMS/trace_lines" -p t.ht | grep -q "$name"
    ran=1
  done
  [ "$ran" -eq 1 ] || skip "no other allocator is installed"
}

@test "every C++ operator, in order, with all its arguments" {
  skip_under_sanitizer
  [ -x "$HEAPTAPE_PROGRAMS/calls_cxx" ] || skip "no C++ compiler"
  record "$HEAPTAPE_PROGRAMS/calls_cxx"
  [ "$status" -eq 0 ]
  as_told
}

@test "the same C++ operators with an allocator that defines them" {
  skip_under_sanitizer
  [ -x "$HEAPTAPE_PROGRAMS/calls_cxx" ] || skip "no C++ compiler"
  ran=0
  for name in jemalloc tcmalloc_minimal mimalloc; do
    library=$(ldconfig -p | sed -n "s|.*lib$name\.so\.[0-9.]* .*=> ||p" | head -n 1)
    [ -n "$library" ] || continue
    failing=failing
    [ "$name" != mimalloc ] || failing= # built as C, it aborts where the others throw
    record_options="-a $library" record "$HEAPTAPE_PROGRAMS/calls_cxx" $failing
    [ "$status" -eq 0 ]
    as_told
    ran=1
  done
  [ "$ran" -eq 1 ] || skip "no other allocator is installed"
}

# failed KIND: the number of its failed calls.
failed() {
  awk -v kind="$1" '$5 == kind && $7 == 2 ^ 60 && $11 == 12 && $10 == "0"' lines | wc -l
}

@test "C++ operators that throw, and new_handlers that free and throw" {
  skip_under_sanitizer
  [ -x "$HEAPTAPE_PROGRAMS/calls_cxx" ] || skip "no C++ compiler"
  record "$HEAPTAPE_PROGRAMS/calls_cxx" failing
  [ "$status" -eq 0 ]
  [ "$(failed new)" -eq 3 ]
  [ "$(failed 'new[]')" -eq 1 ]
  [ "$(failed 'new(align)')" -eq 1 ]
  [ "$(failed 'new[](align)')" -eq 1 ]
  [ "$(failed 'new(nothrow)')" -eq 1 ]
  [ "$(failed 'new(align,nothrow)')" -eq 1 ]
  [ "$(failed 'new[](nothrow)')" -eq 1 ]
  # The handler's free, the later calls, and no free of an unknown block; exceptions are blocks,
  # too.
  [ "$(count_lines | tr '\n' ,)" = "delete 7068 1,free 6059 1,malloc 6059 1,new 7068 1," ] || { count_lines; false; }
  awk '$10 != "0" { live[$10] = 1; next } $6 != "0" && !live[$6] { print; bad = 1 } { delete live[$6] } END { exit bad }' lines
}

@test "marks in position-independent and other code; linking and running do not need the library" {
  skip_under_sanitizer
  printf '%s\n' '#include "heaptape/heaptape.h"' 'int main(void) { heaptape_mark("here it is"); return 0; }' >mark.c
  for flags in '-fPIE -pie' '-fno-pie -no-pie'; do
    # shellcheck disable=SC2086
    cc $flags -I"$HEAPTAPE_SOURCE/include" -o mark mark.c
    ./mark
    record ./mark
    grep -q 'mark .* here it is$' lines
  done
}

@test "the public header compiles as C++ without a warning, also in a class with members of the same names" {
  skip_under_sanitizer
  cat >mark.cc <<'EOF'
#include <dlfcn.h>
#include "heaptape/heaptape.h"
struct profiler {
    int heaptape_mark(const char *text) { return text[0]; }
    int heaptape_pause() { return 1; }
    int heaptape_status = 2;
};
int main()
{
    profiler p;
    int sum = p.heaptape_mark("m") + p.heaptape_pause() + p.heaptape_status;
    heaptape_pause();
    heaptape_mark("not recorded");
    heaptape_resume();
    heaptape_mark("from C++");
    return sum == 'm' + 3 && (heaptape_status() == HEAPTAPE_NONE || heaptape_status() == HEAPTAPE_RECORDING) ? 0 : 1;
}
EOF
  local compiler flags
  for compiler in g++ clang++; do
    command -v "$compiler" || continue
    for flags in '-fPIE -pie' '-fno-pie -no-pie' '-fPIE -pie -O2 -std=c++11'; do
      # shellcheck disable=SC2086
      "$compiler" -Wall -Wextra -Wpedantic -Wold-style-cast -Werror $flags -I"$HEAPTAPE_SOURCE/include" -o mark mark.cc
      ./mark
      record ./mark
      grep -q 'mark .* from C++$' lines
      run grep 'not recorded' lines
      [ "$status" -eq 1 ]
    done
  done
}

@test "mallctl of an allocator with and without it" {
  skip_under_sanitizer
  record "$HEAPTAPE_PROGRAMS/mallctl"
  [ "$status" -eq 2 ]
  "$HEAPTAPE" allocators --json | grep -A1 '"jemalloc"' | grep -q true || skip "no jemalloc"
  record_options='-a jemalloc' record "$HEAPTAPE_PROGRAMS/mallctl"
  [ "$status" -eq 0 ]
  [ "$(awk '$5 == "mallctl" { print $13 }' lines | tr '\n' ' ')" = "epoch stats.allocated " ]
}
