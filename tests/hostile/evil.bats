load hostile

# HEAPTAPE_TEST_SEEDS=500 runs each mode with 500 seeds.
seeds=${HEAPTAPE_TEST_SEEDS:-1}
calls=4000 # of each thread of `known`

setup_file() {
  export PATH=$HEAPTAPE_PROGRAMS/hostile:$PATH
}

# beside MODE SEED: records evil together with a program that counts its calls. Both, and the shell,
# must behave as without heaptape. `known` has its spool before evil starts, because a program that
# finds no session is not recorded.
beside() {
  rm -f started
  records sh -c 'KNOWN_STARTED=started known threads "$2" 4 & known=$!; until [ -e started ]; do sleep 0.01; done
    evil "$0" 0.2 "$1"; wait $known; echo "known $?"' "$1" "$2" "$calls"
  echo "evil $1 0.2 $2: status $status, $output, $stderr"
  [ "$status" -eq 0 ]
  [ "$output" = "$((4 * calls))
known 0" ]
}

# whole: the recording of the other program is complete.
whole() {
  local found
  found=$(timeout -k 1 120 "$HEAPTAPE" dump t.ht | grep -c 'realloc(.*, 5003)')
  echo "$found of $((4 * calls)) calls"
  [ "$found" -eq $((4 * calls)) ]
  timeout -k 1 120 "$HEAPTAPE" check -q t.ht
}

# each MODE...: runs all seeds.
each() {
  skip_under_sanitizer
  for ((seed = 1; seed <= seeds; seed++)); do
    for mode; do
      beside "$mode" "$seed"
      whole
    done
  done
}

@test "a program overwrites its spool" {
  each header fresh chunkhead lanes slow words all
}

@test "a program truncates its spool, once or repeatedly" {
  each trunc
  # On a busy machine, a recorder whose first pass comes after the truncation finds no spool.
  case $stderr in
    *"recording turned itself off in process "*": its spool was"* | *"1 spool could not be read"*) ;;
    *) false ;;
  esac
  # The file may have its full size again between two passes of the recorder.
  each trunclive
}

@test "a spool that is truncated before the recorder's first pass is named" {
  skip_under_sanitizer
  records sh -c 'kill -STOP $PPID; evil trunc 0 1; kill -CONT $PPID; churn 10'
  has "$stderr" "heaptape: 1 spool could not be read: a program truncated or overwrote it before the recorder read it"
  [ "$("$HEAPTAPE" stat --json --brief t.ht | jq -c '.balance | [.unreadable_spools, .lost_at_least]')" = '[1,1]' ]
  # Without a truncation, there is no such message.
  records sh -c 'churn 10; forkloop 20'
  expect "no such message" [ "${stderr#*could not be read}" = "$stderr" ]
}

@test "a program removes its spool and creates false ones" {
  each unlink clone plant
}

@test "a program overwrites the session" {
  skip_under_sanitizer
  for ((seed = 1; seed <= seeds; seed++)); do
    beside session "$seed"
    has "$stderr" "a program overwrote the memory that it shares with the recorder"
    whole || has "$stderr" "turned itself off"
  done
}

@test "a program truncates the session: the recorder and other programs continue" {
  each truncsession
  has "$stderr" "a program overwrote the memory that it shares with the recorder"
}

@test "users of root's session share no file that they may write" {
  skip_under_sanitizer
  for_other_users tests/hostile/churn
  # shellcheck disable=SC2016 # the inner shell's
  records setpriv --reuid 65534 --regid 65534 --clear-groups sh -c 'cd /; churn 10; for f in session reserves-0; do
    (: >>"$HEAPTAPE_SPOOL/$f") 2>/dev/null && echo "writes to $f"; done
    (: <"$HEAPTAPE_SPOOL/reserves-0") 2>/dev/null && echo "reads reserves-0"
    stat -c "%n %u %a" "$HEAPTAPE_SPOOL/session" "$HEAPTAPE_SPOOL"/reserves-0 "$HEAPTAPE_SPOOL/reserves-65534" | sed "s,.*/,,"'
  expect "files" [ "$output" = "done 10
session 0 644
reserves-0 0 600
reserves-65534 65534 600" ]
}
