load hostile

setup_file() {
  export PATH=$HEAPTAPE_PROGRAMS/hostile:$PATH
}

@test "a program with its own malloc gets its own blocks from operator new" {
  skip_under_sanitizer
  records own_malloc
  [ "$status" -eq 0 ]
  [ "$output" = "new from my heap: 1
usable 100" ]
}

@test "a library that overrides two operators: each call is recorded once" {
  skip_under_sanitizer
  records env "LD_PRELOAD=$HEAPTAPE_BUILD/src/capture/libheaptape.so:$HEAPTAPE_PROGRAMS/hostile/libtest-own-operators.so" tramp
  [ "$status" -eq 0 ]
  "$HEAPTAPE" dump --format json t.ht | jq -r .kind | grep -E 'new|delete' | sort | uniq -c | sed 's/^ *//' >kinds
  cat kinds
  [ "$(cat kinds)" = "5 delete[]
5 new[](nothrow)" ]
}
