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
  fails_with 1 "random: is not a heaptape trace or workload"
}

@test "damaged and cut-off traces" {
  skip_under_sanitizer
  [ -f "$HEAPTAPE_BUILD/src/capture/libheaptape.so" ] || skip "no capture library in this build"
  heaptape record -q -o a.ht -- ls -l /
  heaptape check a.ht
  expect "status 0" [ "$status" -eq 0 ]
  has "$output" "a.ht: intact trace: "
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

# damage FILE AT: FILE with one byte changed, as `bad`.
damage() {
  { head -c "$2" "$1"; head -c 1 <(tail -c +$(($2 + 1)) "$1") | tr '\0-\377' '\1-\377\0'; tail -c +$(($2 + 2)) "$1"; } >bad
}

# frames FILE, events FILE: how many
frames() {
  "$HEAPTAPE" check "$1" | sed 's/.* in \([0-9]*\) frames.*/\1/'
}
events() {
  "$HEAPTAPE" stat --json "$1" | grep -o '"events": *[0-9]*' | head -1 | grep -o '[0-9]*$'
}

@test "salvage keeps all but the damaged frame" {
  printf '%s\n' 'process 7 prog' >text
  for ((i = 1; i <= 60; i++)); do
    printf '%s\n' "0 $((i * 100)) malloc size=16 result=$((65536 + i * 64))" "0 $((i * 100 + 50)) free ptr=$((65536 + i * 64))" round
  done >>text
  echo end >>text
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <text
  expect "so many events" [ "$(events a.ht)" -eq 120 ]
  size=$(stat -c %s a.ht)
  whole=$(frames a.ht)
  for at in $((size / 4)) $((size / 2)) $((size * 2 / 3)); do
    damage a.ht "$at"
    heaptape check bad
    expect "status 1" [ "$status" -eq 1 ]
    heaptape check --salvage -f -o good.ht bad
    expect "status 0" [ "$status" -eq 0 ]
    has "$stderr" "lost 1 frame ("
    expect "all but one" [ "$(frames good.ht)" -eq $((whole - 1)) ]
    expect "all but two events" [ "$(events good.ht)" -eq 118 ]
    heaptape convert -f -o good.htw good.ht
    expect "status 0" [ "$status" -eq 0 ]
  done
}

@test "salvage of what begins or ends in the middle" {
  printf '%s\n' 'process 7 prog' '0 100 malloc size=16 result=65536' round '0 200 free ptr=65536' end >text
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <text
  size=$(stat -c %s a.ht)
  damage a.ht 45
  heaptape check --salvage -o first.ht bad
  expect "status 0" [ "$status" -eq 0 ]
  has "$stderr" "the session frame is lost"
  expect "events" [ "$(events first.ht)" -eq 2 ]
  head -c $((size - 10)) a.ht >bad
  heaptape check --salvage -o last.ht bad
  has "$stderr" "the end is missing"
  expect "events" [ "$(events last.ht)" -eq 2 ]
  heaptape check last.ht
  expect "status 0" [ "$status" -eq 0 ]
  head -c 5000 /dev/urandom >bad
  heaptape check --salvage -o none.ht bad
  fails_with 1 "no intact frame found"
  expect "no file" [ ! -e none.ht ]
  heaptape check --salvage a.ht
  usage_fails "--salvage and -o FILE require each other"
}
