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

json() {
  python3 -c "import json,os,sys; d=json.load(open('out.json')); $1" "${@:2}"
}

