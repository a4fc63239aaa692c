load hostile

bats_require_minimum_version 1.5.0

# Files named by a program: libdw would wait for a pipe forever, and decompress any section.

# recorded OPTION...: builds a program with these options and a build ID, and records it to p.ht.
recorded() {
  skip_under_sanitizer
  printf '%s\n' '#include <stdlib.h>' \
    'int main(void) { for (int i = 0; i < 10; i++) if (!malloc(i + 1)) return 1; return 0; }' >p.c
  gcc -w -Wl,--build-id "$@" -o p p.c
  "$HEAPTAPE" record -q --stacks -f -o p.ht -- ./p
}

# with_link: moves the debugging information to p.dbg, which p names.
with_link() {
  objcopy --only-keep-debug p p.dbg
  strip p
  objcopy --add-gnu-debuglink=p.dbg p
  "$HEAPTAPE" record -q --stacks -f -o p.ht -- ./p
}

# shows PATTERN OPTION...: the call site is printed with PATTERN within two minutes.
shows() {
  local pattern=$1
  shift
  run --separate-stderr timeout -k 1 120 "$HEAPTAPE" stat --by site "$@" p.ht
  expect "status 0" [ "$status" -eq 0 ]
  [[ "${lines[1]}" == *$pattern* ]]
}

# refused FILE PATTERN OPTION...: if FILE is a pipe or device, heaptape prints its name, but does
# not open it.
refused() {
  local file=$1 pattern=$2
  shift 2
  mkdir -p "$(dirname "$file")"
  rm -f "$file" && mkfifo "$file"
  shows "$pattern" "$@"
  has "$stderr" "$(basename "$file"): not a regular ELF file"
  rm -f "$file" && ln -s /dev/zero "$file"
  shows "$pattern" "$@"
  has "$stderr" "$(basename "$file"): not a regular ELF file"
  rm -f "$file"
}

@test "a pipe or device instead of a separate debug file is not opened" {
  recorded -g
  with_link
  shows "main (p.c:2)"
  [ -z "$stderr" ]
  mv p.dbg away
  local id
  id=$(readelf -n p | sed -n 's/.*Build ID: //p')
  refused p.dbg "0x"
  refused .debug/p.dbg "0x"
  refused "sys/.build-id/${id:0:2}/${id:2}.debug" "0x" --debug-dir sys
  refused "sys/.build-id/${id:0:2}/${id:2}" "0x" --debug-dir sys
  refused "sys/p.dbg" "0x" --debug-dir sys
  refused "sys$PWD/p.dbg" "0x" --debug-dir sys
  refused "sys/${PWD##*/}/p.dbg" "0x" --debug-dir sys
  refused "sys/p" "0x" --debug-dir sys
  # Tests the shared debug file of dwz.
  cp away p.dbg
  { printf 'shared.dbg\0'; head -c 20 /dev/zero; } >alt
  objcopy --add-section .gnu_debugaltlink=alt p.dbg
  shows "main (p.c:2)"
  refused shared.dbg "0x"
  refused .dwz/shared.dbg "0x"
  shows "main (p.c:2)"
}

# unit PROGRAM: prints the path of the program's split unit.
unit() {
  readelf --debug-dump=info "$1" | sed -n 's/.*DW_AT.*dwo_name.*: //p' | tail -n 1
}

@test "a pipe or device instead of a split unit is not opened" {
  recorded -g -gsplit-dwarf
  shows "main (p.c:2)"
  local name
  name=$(unit p)
  mv "$name" away
  refused "$name" "main (p"
  # The path is relative to the directory of the executable, or to the directory of the compilation.
  mkdir bin && mv p bin
  "$HEAPTAPE" record -q --stacks -f -o p.ht -- bin/p
  refused "bin/$name" "main (p"
  refused "$name" "main (p"
  mv away "$name"
  shows "main (p.c:2)"
  recorded -g -gsplit-dwarf -dumpdir "$PWD/bin/"
  rm -f "$name"
  name=$(unit p)
  [ "${name%/*}" = "$PWD/bin" ]
  shows "main (p.c:2)"
  refused "$name" "main (p"
}

@test "a module's file that was replaced by a pipe is not opened" {
  recorded -g
  mv p away
  refused p "0x"
}

# with_section NAME OPTION...: builds p with a compressed section of 64 MiB of zeros.
with_section() {
  recorded -g
  objcopy --dump-section .debug_str=strings p
  head -c 64M /dev/zero >>strings
  objcopy --update-section .debug_str=strings p
  objcopy "$@" p
  rm strings
  expect "compressed" [ "$(stat -c %s p)" -lt 1000000 ]
}

@test "a section that expands too far is not decompressed" {
  with_section --compress-debug-sections=zlib
  shows "0x"
  has "$stderr" "/p: not a regular ELF file, or its compressed sections are too large"
  with_section --compress-debug-sections=zlib-gnu
  shows "0x"
  has "$stderr" "its compressed sections are too large"
  run "$HEAPTAPE" symbolize -f -o named.ht p.ht
  has "$output" "its compressed sections are too large"
  # Tests the same section in a separate debug file.
  with_link
  shows "0x"
  has "$stderr" "p.dbg: not a regular ELF file"
  # Sections compressed by compilers are read.
  recorded -g -gz
  shows "main (p.c:2)"
  [ -z "$stderr" ]
}

@test "symbols compressed by LZMA are read up to a size" {
  recorded
  head -c 100000 /dev/urandom >data
  strip p
  objcopy --add-section .gnu_debugdata=data p
  shows "0x"
  has "$stderr" "its compressed sections are too large"
}

@test "a debug folder may be relative" {
  recorded -g
  mkdir dbg
  with_link
  mv p.dbg dbg
  shows "0x"
  shows "main (p.c:2)" --debug-dir dbg
  shows "main (p.c:2)" --debug-dir "none:./dbg/"
  shows "main (p.c:2)" --debug-dir "$PWD/dbg"
  # A directory is relative to the current one, not to the directory of the executable.
  mkdir bin && mv p bin
  "$HEAPTAPE" record -q --stacks -f -o p.ht -- bin/p
  shows "main (p.c:2)" --debug-dir dbg
  mkdir there && cd there
  run --separate-stderr "$HEAPTAPE" stat --by site --debug-dir ../dbg ../p.ht
  [[ "${lines[1]}" == *"main (p.c:2)"* ]]
  "$HEAPTAPE" symbolize -q --debug-dir ../dbg -o named.ht ../p.ht
  rm -r ../bin ../dbg
  run --separate-stderr "$HEAPTAPE" stat --by site named.ht
  [[ "${lines[1]}" == *"main (p.c:2)"* ]]
}
