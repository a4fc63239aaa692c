load hostile

# HEAPTAPE_TEST_SEEDS=500 runs each kind with so many seeds.
seeds=${HEAPTAPE_TEST_SEEDS:-1}
calls=4000 # of each call of `known`'s threads

setup_file() {
  export PATH=$HEAPTAPE_PROGRAMS/hostile:$PATH
}

# beside MODE SEED: records evil beside a program that counts its own calls; then both, and what the shell says, is as
# it would be without heaptape.
beside() {
  records sh -c 'known threads "$2" 4 & known=$!; evil "$0" 0.2 "$1"; wait $known; echo "known $?"' "$1" "$2" "$calls"
  echo "evil $1 0.2 $2: status $status, $output, $stderr"
  [ "$status" -eq 0 ]
  [ "$output" = "$((4 * calls))
known 0" ]
}

# whole: the recording of the other program is, to the call.
whole() {
  local found
  found=$(timeout -k 1 30 "$HEAPTAPE" dump t.ht | grep -c 'realloc.*5003')
  echo "$found of $((4 * calls)) calls"
  [ "$found" -eq $((4 * calls)) ]
  timeout -k 1 30 "$HEAPTAPE" check -q t.ht
}

# each MODE...: with all seeds.
each() {
  skip_under_sanitizer
  for ((seed = 1; seed <= seeds; seed++)); do
    for mode; do
      beside "$mode" "$seed"
      whole
    done
  done
}

@test "a program writes over its spool" {
  each header fresh chunkhead lanes slow words all
}

@test "a program truncates its spool, for good or again and again" {
  # A recorder that first looks after the truncation, on a busy machine, finds no spool there.
  for ((try = 0; try < 10; try++)); do
    each trunc
    case $stderr in *"its spool was"*) break ;; esac
  done
  has "$stderr" "recording turned itself off in a process: its spool was"
  # Between two looks of the recorder it may be whole again.
  each trunclive
}

@test "a program removes its spool, plants others and things that are none" {
  each unlink clone plant
}

@test "a program writes over the session" {
  skip_under_sanitizer
  for ((seed = 1; seed <= seeds; seed++)); do
    beside session "$seed"
    has "$stderr" "a program overwrote the memory that it shares with the recorder"
    whole || has "$stderr" "turned itself off"
  done
}

@test "a program truncates the session: the recorder lives on" {
  skip_under_sanitizer
  records sh -c 'evil truncsession 0.2 1; echo done'
  has "$stderr" "a program overwrote the memory that it shares with the recorder"
}
