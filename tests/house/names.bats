load ../helper

check_names() {
  run "$HEAPTAPE_SOURCE/tools/check-names" "$1"
  echo "$output"
}

# plant FILE LINE: copies the sources and adds LINE to FILE, which makes that line the only fault.
plant() {
  mkdir -p copy
  cp -r "$HEAPTAPE_SOURCE/src" copy/
  echo "$2" >>"copy/$1"
  check_names copy
  [ "$status" -eq 1 ]
  [ "${#lines[@]}" -eq 1 ]
}

@test "names in headers have their prefix, and each tag is defined once" {
  check_names "$HEAPTAPE_SOURCE"
  [ "$status" -eq 0 ]
}

@test "a planted function, struct and inline function without the folder's prefix are found" {
  plant src/trace/reader.h 'int open_it(int a);'
  has "$output" "src/trace/reader.h"
  has "$output" "open_it begins with none of reader, trace"
  plant src/trace/reader.h 'static inline int next_one(void) { return 1; }'
  has "$output" "next_one begins with none"
  plant src/workload/slice.h 'struct job_of_mine { int a; };'
  has "$output" "job_of_mine begins with none"
}

@test "a struct that is defined twice is found, except in comments" {
  plant src/trace/reader.c 'struct buf { int a; };'
  has "$output" "struct buf is defined here and in src/base/buf.h"
  mkdir -p other/src/base
  printf '// struct buf {\nstruct buf {\n    int a;\n};\nvoid buf_free(struct buf *b);\n' >other/src/base/buf.h
  check_names other
  [ "$status" -eq 0 ]
}

@test "an empty tree is a failure" {
  mkdir empty
  check_names empty
  [ "$status" -eq 1 ]
}
