# Kills the recorder and the program at random times. HEAPTAPE_TEST_KILLS is the number of kills,
# HEAPTAPE_TEST_SEED the first seed.
load hostile

PAIRS=800000 THREADS=3

setup_file() {
  export PATH=$HEAPTAPE_PROGRAMS:$HEAPTAPE_PROGRAMS/hostile:$PATH
  export KILLS=${HEAPTAPE_TEST_KILLS:-10}
}

# Starts `counted` under record. Reading `pipe` ends when the recorder and all programs have ended.
start_counted() {
  rm -rf t.ht s.ht counts* synced out err pipe
  mkfifo pipe
  timeout -k 1 120 cat pipe >out 3>&- &
  reader=$!
  # shellcheck disable=SC2016 # the inner shell's
  "$HEAPTAPE" record -q -f -o t.ht -- sh -c 'counted counts "$0" "$1"; echo "status $?"' $THREADS $PAIRS >pipe 2>err 3>&- &
  recorder=$!
}

# Prints the pid of the running program, or "" after 5 s.
program_pid() {
  local pid=0
  for ((i = 0; i < 500 && pid == 0; i++)); do
    [ -s counts ] && read -r pid < <(od -An -tu4 -N4 counts)
    [ "$pid" -ne 0 ] || sleep 0.01
  done
  [ "$pid" -eq 0 ] || echo "$pid"
}

random_sleep() {
  sleep "0.$(printf %03d $((RANDOM % $1)))"
}

# check --salvage keeps exactly the readable part.
check_salvaged() {
  local kept
  [ -s t.ht ] && [ "$1" -gt 0 ] || return 0
  "$HEAPTAPE" check -q --salvage -f -o s.ht t.ht
  kept=$(compare_counts s.ht counts none)
  echo "salvaged $kept of $1"
  [ "$kept" -eq "$1" ]
}

@test "the recorder is killed" {
  skip_under_sanitizer
  RANDOM=${HEAPTAPE_TEST_SEED:-1}
  local unsynced=0 synced=0 early=0 records=0 n
  for ((k = 0; k < KILLS; k++)); do
    start_counted
    # Some kills come before the program runs.
    [ $((k % 5)) -eq 4 ] || program_pid >pid
    random_sleep 100
    # In every other round, the trace must have all calls before a sync.
    if [ $((k % 2)) -eq 0 ] && [ -s counts ] && cp counts before && heaptape ctl -q "$(program_pid)" sync && [ "$status" -eq 0 ]; then
      cp before synced
    fi
    kill -9 $recorder || true
    wait $recorder || true
    wait $reader || true
    # Either the program had not started, or it ended as without heaptape.
    if [ -e counts ] || [ -s out ]; then
      expect "the program's output, not: $(cat out)" [ "$(cat out)" = $((THREADS * PAIRS))$'\nstatus 7' ]
    else
      early=$((early + 1))
    fi
    if [ -e synced ]; then
      n=$(compare_counts t.ht synced at-least)
      synced=$((synced + 1))
    else
      n=$(compare_counts t.ht counts none)
      unsynced=$((unsynced + 1))
    fi
    records=$((records + n))
    check_salvaged "$n"
    # The next recorder removes the session after the program's end.
    [ ! -s counts.folder ] || cat counts.folder >>folders
    [ ! -s counts.folder ] || echo >>folders
  done
  # A recorder keeps a session whose files another recorder is examining at the same time.
  is_removed() { "$HEAPTAPE" record -q -f -o t.ht -- churn 10 >churned && [ ! -e "$folder" ]; }
  while read -r folder; do
    expect "$folder is gone" wait_until is_removed
  done <folders
  echo "# $KILLS kills of the recorder: $early before the program began, $synced after a sync, $unsynced without; $records records" >&3
}

@test "the program is killed" {
  skip_under_sanitizer
  RANDOM=${HEAPTAPE_TEST_SEED:-1}
  local killed=0 ended=0 records=0 n pid
  for ((k = 0; k < KILLS; k++)); do
    start_counted
    pid=$(program_pid)
    random_sleep 100
    kill -9 "$pid" || true
    wait $recorder || true
    wait $reader || true
    # If it was killed after printing the sum, it has made all its calls.
    case $(cat out) in
      "status 137" | $((THREADS * PAIRS))$'\nstatus 137') killed=$((killed + 1)) ;;
      $((THREADS * PAIRS))$'\nstatus 7') ended=$((ended + 1)) ;;
      *) expect "the program's output, not: $(cat out)" false ;;
    esac
    n=$(compare_counts t.ht counts all) || { ls -l && cat err && heaptape dump t.ht | head -n 20 && echo "$output" && false; }
    records=$((records + n))
    "$HEAPTAPE" check -q t.ht
    [ "$("$HEAPTAPE" stat --json --brief t.ht | jq .lost_records)" -eq 0 ]
    check_salvaged "$n"
    expect "$(cat counts.folder) is gone" [ ! -e "$(cat counts.folder)" ]
  done
  echo "# $KILLS kills of the program: $killed in time, $ended too late; $records records" >&3
}
