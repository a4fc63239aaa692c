load trace

@test "8 threads that count their own calls" {
  skip_under_sanitizer
  record "$HEAPTAPE_PROGRAMS/threads" 30000
  [ "$status" -eq 0 ]
  counts_as_told
  [ "$(awk '$5 == "thread.create"' lines | wc -l)" -eq 8 ]
  [ "$(awk '$5 == "thread.start"' lines | wc -l)" -eq 8 ]
  [ "$(awk '$5 == "thread.end"' lines | wc -l)" -eq 8 ]
}

@test "more threads at once than the spool has room for at first" {
  skip_under_sanitizer
  record "$HEAPTAPE_PROGRAMS/threads" 300 200
  [ "$status" -eq 0 ]
  counts_as_told
  [ "$(awk '$5 == "thread.end"' lines | wc -l)" -eq 200 ]
}

@test "20,000 short threads, with calls in destructors of thread-specific data" {
  skip_under_sanitizer
  record "$HEAPTAPE_PROGRAMS/threads" -s 20000
  [ "$status" -eq 0 ]
  counts_as_told
  [ "$(awk '$5 == "thread.start"' lines | wc -l)" -ge 20000 ]
}

@test "a producer that a bounded queue held back is held back in replay: peak RSS within 20 %" {
  skip_under_sanitizer
  unset MALLOC_PERTURB_
  timeout 60 "$HEAPTAPE_PROGRAMS/queue" 20000 >real
  timeout 60 "$HEAPTAPE" record -q -o t.ht "$HEAPTAPE_PROGRAMS/queue" 20000
  "$HEAPTAPE" replay -q -r 1 --no-latency -a glibc --json t.ht >replay.json
  python3 -c 'import json
real, d = int(open("real").read()), json.load(open("replay.json"))
assert d["memory_threads"] == "coupled"
assert d["fidelity"]["live"]["peak_ratio"] < 1.5, d["fidelity"]["live"]
assert 0.8 * real < d["peak_rss_bytes"] < 1.2 * real, (real, d["peak_rss_bytes"])'
}
