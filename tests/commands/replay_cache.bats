# Plans that are cached for later replays. The workloads have slightly more than 2^20 events,
# because plans of smaller workloads are not cached.
load replay_helper

# The cached plans, one per line: inode and name.
kept() {
  find cache/heaptape -name '*.htp*' -printf '%i %f\n' 2>/dev/null | sort
}

# Sets the time of the last use to 2001.
make_old() {
  touch -d 2001-01-01 cache/heaptape/*.htp
}

was_used() {
  [ -n "$(find cache/heaptape -name '*.htp' -newermt 2002-01-01)" ]
}

@test "a plan is made once for each workload and each set of settings" {
  make_workload churn 2 510000 30
  replay_verified
  local first
  first=$(kept)
  expect "one plan" [ "$(wc -l <<<"$first")" -eq 1 ]
  expect "private permissions" [ "$(stat -c %a cache/heaptape/*.htp) $(stat -c %a cache/heaptape)" = "600 700" ]
  heaptape check cache/heaptape/*.htp
  [[ $output == cache/heaptape/*.htp": intact saved plan, "* ]]
  for options in "" "--runs 2" "--memory 4G"; do
    make_old
    # shellcheck disable=SC2086
    replay_verified $options
    expect "the same plan with $options" [ "$(kept)" = "$first" ]
    expect "used with $options" was_used
  done
  local n=1 settings=("--threads one" "--memory 4M" "--stats-every 100000" "--trim-every 500000" "--speed x1000000")
  # The names of plans are the same under a sanitizer, and a million events take seconds there. Both
  # kinds of plans are written and read.
  [ -z "$HEAPTAPE_SANITIZED" ] || settings=("--threads one" "--memory 4M")
  for options in "${settings[@]}"; do
    for _ in 1 2; do
      # shellcheck disable=SC2086
      replay_verified $options
      expect "one more plan for $options" [ "$(kept | wc -l)" -eq $((n + 1)) ]
    done
    n=$((n + 1))
  done
  make_workload churn 2 505000 30
  for _ in 1 2; do replay_verified; done
  expect "another plan for another workload" [ "$(kept | wc -l)" -eq $((n + 1)) ]
}

@test "a cached plan gives the results of a new one" {
  make_workload churn 3 340000 20
  for options in "" "--memory 4M" "--threads one --fragmentation"; do
    for round in none made used; do
      # shellcheck disable=SC2086
      "$HEAPTAPE" replay -q -r 1 --json $options "$([ $round = none ] && echo --no-cache || echo --cache)" w.htw >$round.json
      expect "$round with $options" [ "$([ $round = none ] && echo 0 || echo 1)" -le "$(kept | wc -l)" ]
    done
    python3 - <<'END'
import json
none, made, used = (json.load(open(n + ".json")) for n in ("none", "made", "used"))
for key in ("events", "skipped", "preexisting", "threads", "dependencies", "switches", "peak_live_bytes", "live_at_end_bytes"):
    assert none.get(key) == made.get(key) == used.get(key), (key, none.get(key), made.get(key), used.get(key))
for d in (made, used):
    assert sorted(d["calls"]) == sorted(none["calls"])
    assert len(d["timeline"]) == len(none["timeline"]) and d["timeline"][-1][0] == none["timeline"][-1][0]
    assert sorted(d) == sorted(none)
END
  done
}

@test "a damaged plan is rebuilt" {
  make_workload churn 1 1040000
  replay_verified
  local file size
  file=$(echo cache/heaptape/*.htp) size=$(stat -c %s cache/heaptape/*.htp)
  cp "$file" good
  for at in 0 9 200 4096 $((size / 2)) $((size - 300)) $((size - 9)); do
    printf '\xa5' | dd of="$file" bs=1 seek="$at" conv=notrunc status=none
    expect "damaged at $at" [ "$(cmp -s good "$file"; echo $?)" -eq 1 ]
    replay_verified
    expect "rebuilt after damage at $at" cmp good "$file"
  done
  for bytes in 0 100 $((size / 2)) $((size - 1)); do
    truncate -s "$bytes" "$file"
    replay_verified
    expect "rebuilt after truncation to $bytes bytes" cmp good "$file"
  done
}

@test "a damaged plan that is streamed ends the replay with one line, and is rebuilt" {
  make_workload churn 1 1040000
  replay_verified --memory 4M
  local file
  file=$(echo cache/heaptape/*.htp)
  heaptape check "$file"
  expect "intact" [ "$status" -eq 0 ]
  printf '\xa5' | dd of="$file" bs=1 seek=3000000 conv=notrunc status=none
  heaptape check "$file"
  fails_with 1 "checksum mismatch after byte "
  heaptape replay -q -r 1 --memory 4M w.htw
  fails_with 1 "w.htw: checksum mismatch in window " " of its saved plan: try again"
  expect "removed" [ ! -e "$file" ]
  replay_verified --memory 4M
  expect "rebuilt" [ -e "$file" ]
}

@test "no plan is cached in folders that others can write, without a folder, for small workloads, or with --no-cache" {
  make_workload churn 1 1040000
  replay_verified --no-cache
  replay_verified --no-cache --memory 4M
  expect "no folder" [ ! -e cache ]
  mkdir -p cache/heaptape
  chmod 770 cache/heaptape
  replay_verified
  expect "no plan in a group's folder" [ -z "$(kept)" ]
  rmdir cache/heaptape && mkdir elsewhere && ln -s ../elsewhere cache/heaptape
  replay_verified
  expect "no plan behind a link" [ -z "$(ls elsewhere)" ]
  rm cache/heaptape && touch cache/heaptape
  replay_verified
  replay_verified --memory 4M
  XDG_CACHE_HOME='' HOME=$PWD/home replay_verified
  expect "no home, no plan" [ ! -e home ]
  mkdir home
  XDG_CACHE_HOME=relative HOME=$PWD/home replay_verified
  expect "in ~/.cache" [ "$(find home/.cache/heaptape -name '*.htp' | wc -l)" -eq 1 ]
  rm -r cache
  make_workload churn 1 100000
  replay_verified
  expect "no plan of a small workload" [ ! -e cache ]
}

@test "neither links nor files of other users are used as plans" {
  make_workload churn 1 1040000
  replay_verified
  local file
  file=$(echo cache/heaptape/*.htp)
  mv "$file" plan && chmod 666 plan && cp plan "$file" && chmod 666 "$file"
  make_old
  replay_verified
  expect "replaced the file that others can write" [ "$(stat -c %a "$file")" = 600 ]
  mv "$file" plan && ln -s ../../plan "$file"
  heaptape replay -q -r 1 w.htw
  expect "status 0" [ "$status" -eq 0 ]
  expect "the link's target is unchanged" cmp plan plan
}

@test "the least recently used plans make room" {
  make_workload churn 1 1040000
  mkdir -p cache && mkdir -m 700 cache/heaptape
  truncate -s 8G cache/heaptape/old.htp
  truncate -s 1K cache/heaptape/unfinished.htp.tmp-1 cache/heaptape/other
  touch -d 2001-01-01 cache/heaptape/*
  replay_verified
  expect "the old plan is gone" [ ! -e cache/heaptape/old.htp ]
  expect "one plan" [ "$(find cache/heaptape -name '*.htp' | wc -l)" -eq 1 ]
  expect "other files stay" [ -e cache/heaptape/other ]
}
