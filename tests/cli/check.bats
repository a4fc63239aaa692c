load ../helper

@test "what is no file of heaptape's" {
  heaptape check nothing-here
  fails_with 1 "nothing-here: No such file"
  heaptape check .
  fails_with 1 ".: is a directory"
  : >empty
  heaptape check empty
  fails_with 1 "empty: is empty"
  head -c 1000 /dev/urandom >random
  heaptape check random
  fails_with 1 "random: is no trace and no workload, at byte 0"
}

@test "damaged and cut-off traces" {
  skip_under_sanitizer
  [ -f "$HEAPTAPE_BUILD/src/capture/libheaptape.so" ] || skip "no capture library in this build"
  heaptape record -q -o a.ht -- ls -l /
  heaptape check a.ht
  expect "status 0" [ "$status" -eq 0 ]
  has "$output" "a.ht: good: a trace of"
  size=$(stat -c %s a.ht)
  for n in 10 39 41 $((size / 2)) $((size - 1)); do
    head -c "$n" a.ht >cut
    heaptape check cut
    fails_with 1 "cut: " "cut off"
  done
  for at in 1 20 50 $((size / 2)) $((size - 2)); do
    { head -c "$at" a.ht; printf '\xa5'; tail -c +$((at + 2)) a.ht; } >bad
    cmp -s a.ht bad && continue
    heaptape check bad
    fails_with 1 "bad: " "byte"
  done
}
