load hostile

setup_file() {
  export PATH=$HEAPTAPE_PROGRAMS/hostile:$PATH
}

# all_calls COMMAND...: how many events a recording of all of it has, in $all.
all_calls() {
  "$HEAPTAPE" record -q -f -o all.ht -- "$@" >out
  all=$("$HEAPTAPE" stat --json --brief all.ht | jq .events)
  rm all.ht
}

# said_lost: of the last run.
said_lost() {
  sed -n 's/^heaptape: \(at least \)\?\([0-9 ]*\) records\? w[a-z]* lost$/\2/p' <<<"$stderr" | tr -d ' '
}

# adds_up RECORDED: with what was said to be lost it is all there was.
adds_up() {
  local lost
  lost=$(said_lost)
  echo "$1 recorded + ${lost:-none} lost = $all?"
  [ $(($1 + ${lost:-0})) -eq "$all" ]
}

@test "--max-size: what follows is counted" {
  skip_under_sanitizer
  all_calls known _exit 100000
  bats_require_minimum_version 1.5.0
  run --separate-stderr timeout -k 1 20 "$HEAPTAPE" record -f -o t.ht --max-size 64K -- known _exit 100000
  expect "output" [ "$output" = 100000 ]
  adds_up "$(events)"
}

@test "a process that cannot make a spool is named, with its calls" {
  skip_under_sanitizer
  all_calls known _exit 10000
  bats_require_minimum_version 1.5.0
  # Neither a file nor, since the recorder is limited, too, a place in the session's.
  run --separate-stderr timeout -k 1 20 bash -c 'ulimit -f 100; exec "$0" record -o - -- known _exit 10000 >/dev/null' "$HEAPTAPE"
  expect "status" [ "$status" -eq 125 ]
  has "$stderr" "nothing was recorded: no spool could be made for it: File too large"
  # A recorder without such limits has places in its session, which those take that have no files.
  run --separate-stderr timeout -k 1 20 "$HEAPTAPE" record -f -o t.ht -- bash -c 'ulimit -f 100; known _exit 10000'
  at_least 110000 events
}
