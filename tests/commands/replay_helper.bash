# Shared by the tests of replay.

load ../helper

# Writes a workload to w.htw and the calls that it must make to `expected`, without facts that only
# a player can know.
make_workload() {
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw "$@" >facts
  grep -v peak_live_bytes facts | sort >expected
}

# Replays w.htw on the allocator that checks its callers. The replay must succeed with the expected
# counts.
replay_verified() {
  VERIFY_COUNTS=$PWD/counts run timeout 120 "$HEAPTAPE" replay -q -r 1 --no-latency \
    -a "$HEAPTAPE_PROGRAMS/libtest-verify.so" "$@" w.htw
  [ "$status" -eq 0 ] || { echo "$output"; return 1; }
  sort counts | diff expected -
}

# record_with_samples N FILE ARGUMENT...: records into FILE, with at least N samples of the program's
# memory. On a busy machine, the recorder may run too late for that; then the recording is repeated.
record_with_samples() {
  local n=$1 file=$2
  shift 2
  for _ in 1 2 3 4 5 6; do
    "$HEAPTAPE" record -q -f -o "$file" "$@"
    [ "$("$HEAPTAPE" export -q -F csv -t samples "$file" | tail -n +2 | wc -l)" -lt "$n" ] || return 0
  done
  echo "fewer than $n samples"
  return 1
}

json() {
  python3 -c "import json,os,sys; d=json.load(open('out.json')); $1" "${@:2}"
}

