# Running programs under load, each recorded briefly by tests/bench/attach.
load trace

setup() {
  bats_require_minimum_version 1.5.0
  cd "$BATS_TEST_TMPDIR" || return
  [ "$(id -u)" -eq 0 ] || skip "ptrace and servers of another user need root"
  [ -x "$HEAPTAPE_PROGRAMS/filtered" ] || skip "heaptape cannot attach on this machine"
}

# Succeeds if the preload library counted the same calls between the first and the last recorded
# call. One call at each end may differ. No request may fail or get a different answer.
matches_count() {
  run timeout 600 "$BATS_TEST_DIRNAME/../bench/attach" -b "$HEAPTAPE_BUILD" -s 1 -n 0 "$1" 3>&-
  echo "status $status: $output"
  [ "$status" -eq 0 ]
  [[ "$output" != *"is not installed"* ]] || skip "$1 is not installed"
  echo "$output" | awk -v threads="${2:-1}" 'NR == 2 {
    gsub(/[(),+]/, "")
    for (i = 3; i <= 7; i += 2)
      bad = bad || $i > threads || $i < -threads
    exit bad || $2 < 100 || $9 != 0 || $10 != "no"
  }'
}

@test "python3" {
  matches_count python3
}

@test "redis" {
  matches_count redis 5
}

@test "an nginx worker" {
  matches_count nginx
}

@test "a backend of postgres" {
  for_other_users tests/libattach-count.so tests/trace_lines
  matches_count postgres
}

@test "node" {
  matches_count node 10
}
