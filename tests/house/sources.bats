load ../helper

@test "every header compiles alone" {
  run "$HEAPTAPE_SOURCE/tools/check-headers"
  echo "$output"
  [ "$status" -eq 0 ]
}

@test "a header that needs another header is found" {
  mkdir -p copy/src/base copy/include
  cp "$HEAPTAPE_SOURCE"/src/base/{buf,err}.h copy/src/base/
  printf '#pragma once\nstruct planted { struct buf b; };\n' >copy/src/base/planted.h
  run "$HEAPTAPE_SOURCE/tools/check-headers" copy
  [ "$status" -eq 1 ]
  has "$output" "src/base/planted.h: does not compile alone"
  # A header is also checked if a file includes it, but not first.
  printf '#include "base/buf.h"\n#include "base/planted.h"\n' >copy/src/base/planted.c
  run "$HEAPTAPE_SOURCE/tools/check-headers" copy
  has "$output" "src/base/planted.h: does not compile alone"
  echo 'struct planted { int a; };' >copy/src/base/planted.h
  echo '#include "base/planted.h"' >copy/src/base/planted.c
  run "$HEAPTAPE_SOURCE/tools/check-headers" copy
  [ "$status" -eq 1 ]
  has "$output" "src/base/planted.h: no '#pragma once'"
}

# sources [PATTERN...]: lists the project's files without built and recorded ones.
sources() {
  local patterns=() pattern
  for pattern in "${@:-*}"; do
    patterns+=(-o -path "./$pattern")
  done
  (cd "$HEAPTAPE_SOURCE" && find . \( -name .git -o -path './build*' \) -prune -o -type f \( "${patterns[@]:1}" \) -print) |
    sed "s|^\.|$HEAPTAPE_SOURCE|"
}

@test "the sources are formatted" {
  command -v clang-format >/dev/null || skip "no clang-format"
  sources '*.c' '*.h' >files
  [ -s files ]
  run xargs -a files -n 40 -P "$(nproc)" clang-format --dry-run -Werror
  echo "$output"
  [ "$status" -eq 0 ]
}

# too_wide FILE...: prints the lines of more than 100 columns, except in tables between
# "clang-format off" and "clang-format on", where each row is one line.
too_wide() {
  LC_ALL=C.UTF-8 sed -snE '/clang-format off/,/clang-format on/d; /^.{101}/{F;=;p}' "$@"
}

@test "lines have at most 100 columns" {
  mapfile -t files < <(sources '*.c' '*.h')
  run too_wide "${files[@]}"
  echo "$output"
  [ "$status" -eq 0 ]
  [ -z "$output" ]
  printf '// %098d\n' 0 >wide.c
  printf '// ×%096d\n' 0 >full.c
  printf '// clang-format off\n// %098d\n// clang-format on\n' 0 >table.c
  run too_wide full.c table.c wide.c
  [ "${lines[0]} ${lines[1]}" = "wide.c 1" ]
}

@test "the scripts pass shellcheck" {
  command -v shellcheck >/dev/null || skip "no shellcheck"
  sources | LC_ALL=C xargs awk 'FNR == 1 && /^#!.*[\/ ](ba)?sh/ { print FILENAME } { nextfile }' >files
  [ -s files ]
  # Sourced files are named relative to the project's directory.
  run xargs -a files -n 15 -P "$(nproc)" env --chdir="$HEAPTAPE_SOURCE" shellcheck -x
  echo "$output"
  [ "$status" -eq 0 ]
}

# bash ignores the status of `! command`, so only `! command || false` is a condition.
@test "negations in tests have an effect" {
  sources 'tests/*.bats' 'tests/*.bash' >files
  [ -s files ]
  run xargs -a files awk '/^ *! / && !/[|][|]/ { print FILENAME ":" FNR ": " $0 }'
  echo "$output"
  [ "$status" -eq 0 ]
  [ -z "$output" ]
}

@test "the capture libraries export and import only allowed symbols" {
  local library
  for library in "$HEAPTAPE_BUILD"/src/capture/libheaptape{,-musl}.so; do
    [ -f "$library" ] || skip "no capture library in this build"
    run "$HEAPTAPE_SOURCE/tools/check-symbols" "$library"
    echo "$output"
    [ "$status" -eq 0 ]
  done
}

@test "a library with wrong symbols is found" {
  echo '#include <stdio.h>
  void *malloc(__SIZE_TYPE__); void stray(void); void stray(void) { printf("%p", malloc(1)); }' >bad.c
  cc -shared -fPIC -fno-builtin -o bad.so bad.c -Wl,--no-as-needed -lm
  run "$HEAPTAPE_SOURCE/tools/check-symbols" "$PWD/bad.so"
  [ "$status" -eq 1 ]
  has "$output" "exports stray"
  has "$output" "does not wrap free"
  has "$output" "needs libm.so.6"
  has "$output" "imports malloc"
  has "$output" "imports printf"
  expect "data of the loader and the start files' functions may be imported" [ "${output/imports __cxa_finalize/}" = "$output" ]
}

# Without --no-undefined-version, the definition in libc satisfies the linker.
@test "the capture library does not link without the wrapper of a function of libc" {
  local object=src/capture/libheaptape.so.p/wrap_wrap_c.c.o
  [ -f "$HEAPTAPE_BUILD/$object" ] || skip "no capture library in this build"
  link=$(ninja -C "$HEAPTAPE_BUILD" -t commands src/capture/libheaptape.so | tail -n 1)
  objcopy "$HEAPTAPE_BUILD/$object" whole.o
  objcopy --localize-symbol=pvalloc whole.o lacking.o
  link=${link/-o src\/capture\/libheaptape.so /-o "$PWD/linked.so" }
  run env --chdir="$HEAPTAPE_BUILD" bash -c "${link/$object/$PWD/whole.o}"
  echo "$output"
  [ "$status" -eq 0 ]
  run env --chdir="$HEAPTAPE_BUILD" bash -c "${link/$object/$PWD/lacking.o}"
  echo "$output"
  [ "$status" -ne 0 ]
  has "$output" "pvalloc"
}

# blames_memory SOURCE: the files with a message about memory that does not come from err_no_memory, and so may hide another
# error.
blames_memory() {
  (cd "$1" && grep -rlPzo --include='*.c' 'err_set(_errno)?\([^;]*out of memory"' src) | grep -v '^src/base/err\.c$' || true
}

@test "messages that blame memory come from err_no_memory" {
  run blames_memory "$HEAPTAPE_SOURCE"
  echo "$output"
  [ -z "$output" ]
  mkdir -p copy/src/base
  cp "$HEAPTAPE_SOURCE/src/base/err.c" copy/src/base/
  printf 'return err_set(e, rc,\n    "%%s: out of memory", name);\n' >copy/src/bad.c
  run blames_memory copy
  [ "$output" = src/bad.c ]
}

# unmeasured SOURCE: the figures of origin PLAYER that neither the player nor run.c sets.
unmeasured() {
  local name
  sed -n 's/^    X(\([a-z_]*\), [A-Z]*, PLAYER,.*/\1/p' "$1/src/replay/player/figures_table.h" >figures
  [ -s figures ]
  while read -r name; do
    grep -qE "(figures\.|results_figures, )$name\b" "$1"/src/replay/player/*.c "$1/src/replay/run.c" ||
      echo "figures_table.h: $name has a row, but nothing measures it"
  done <figures
}

@test "every figure of the player is measured" {
  run unmeasured "$HEAPTAPE_SOURCE"
  echo "$output"
  [ "$status" -eq 0 ]
  [ -z "$output" ]
  mkdir -p copy/src
  cp -r "$HEAPTAPE_SOURCE/src/replay" copy/src/
  sed -i '/figures\.major_faults/d' copy/src/replay/player/main.c
  run unmeasured copy
  [ "$output" = "figures_table.h: major_faults has a row, but nothing measures it" ]
}

# undivided SOURCE: the wrappers of kinds in class RESIZE that do not record the first half of the call.
undivided() {
  local name
  sed -nE 's/^ *X\(.*"([a-z_0-9]+)", +RESIZE,.*/\1/p' "$1/src/trace/event/event_table.h" >names
  while read -r name; do
    sed -n "/\*$name(.*[^;]\$/,/^}/p" "$1"/src/capture/wrap/*.c | grep -q '\<begin_resize(' ||
      echo "$name does not call begin_resize"
  done <names
}

@test "every wrapper that resizes records that it releases the old block" {
  [ -z "$(undivided "$HEAPTAPE_SOURCE")" ]
  mkdir -p copy/src/capture
  cp -r "$HEAPTAPE_SOURCE/src/trace" copy/src/
  cp -r "$HEAPTAPE_SOURCE/src/capture/wrap" copy/src/capture/
  sed -i '/^WRAPPER void \*reallocarray/,/^}/{/begin_resize/d}' copy/src/capture/wrap/wrap_c.c
  [ "$(undivided copy)" = "reallocarray does not call begin_resize" ]
}

# unread SOURCE: the members that options of a command set and that neither the command nor an *_options.c reads. Any command
# may read the options of a header.
unread() {
  local file name readers
  for file in "$1"/src/commands/*.[ch]; do
    readers=("$file" "$1"/src/commands/*_options.c)
    [ "$file" = "${file%.h}" ] || readers=("$1"/src/commands/*.c)
    # A table of options names a member with offsetof or with the macro AT.
    grep -v '^#define AT(' "$file" | grep -oE '(offsetof\(struct [a-z_]+, |\<AT\()[a-z0-9_]+' |
      sed -E 's/.*[ (]//' | sort -u >members || true
    while read -r name; do
      grep -qE -- "(->|[a-z]\.)$name\b" "${readers[@]}" || echo "${file#"$1/"}: nothing reads option member $name"
    done <members
  done
}

@test "every option that is parsed is read" {
  run unread "$HEAPTAPE_SOURCE"
  echo "$output"
  [ "$status" -eq 0 ]
  [ -z "$output" ]
  mkdir -p copy/src
  cp -r "$HEAPTAPE_SOURCE/src/commands" copy/src/
  sed -i '/o->max_bytes/d' copy/src/commands/record.c
  run unread copy
  [ "$output" = "src/commands/record.c: nothing reads option member max_bytes" ]
}

@test "only the command line ends the process" {
  sources 'src/*.c' 'src/*.h' | grep -vE '/src/(cli|commands|replay/player)/' |
    xargs grep -nE '(^|[^_a-zA-Z])(exit|abort|die|perror)\(' /dev/null >ends || true
  cat ends
  [ ! -s ends ]
}
