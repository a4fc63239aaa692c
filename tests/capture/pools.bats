load trace

pools() {
  skip_under_sanitizer
  record_options=--stacks=16 record "$HEAPTAPE_PROGRAMS/pools" "$@"
  [ "$status" -eq 0 ]
  "$HEAPTAPE" convert -q -f -o t.htw t.ht
  "$HEAPTAPE" check -q t.htw
}

# count KIND FILE
count() {
  "$HEAPTAPE" stat --brief --json "$2" | jq --arg kind "$1" '.by_kind[$kind] // 0'
}

@test "pools: each call is an event, and calls of the malloc API are unchanged" {
  pools
  # The trace includes the child's calls.
  [ "$(count pool.alloc t.ht),$(count pool.free t.ht),$(count pool.reset t.ht)" = 1511,10,10 ]
  [ "$(count pool.alloc t.htw),$(count pool.free t.htw),$(count pool.reset t.htw)" = 1510,10,9 ]
  "$HEAPTAPE" stat --json t.htw | jq -c '[.by_kind.malloc, .requested_bytes, .peak_live_bytes]' >with
  cp t.htw with.htw
  pools quietly
  "$HEAPTAPE" stat --json t.htw | jq -c '[.by_kind.malloc, .requested_bytes, .peak_live_bytes]' >without
  diff without with
  [ "$(count pool.alloc t.ht)" -eq 0 ]
  # A replay requests the same memory.
  "$HEAPTAPE" replay -q -r 1 --no-latency --json with.htw | jq '[.events, .peak_live_bytes, .skipped]' >with
  "$HEAPTAPE" replay -q -r 1 --no-latency --json t.htw | jq '[.events, .peak_live_bytes, .skipped]' >without
  diff without with
}

@test "pools: memory by source line" {
  pools
  "$HEAPTAPE" stat --by pool --format json t.htw >w.json
  of() {
    jq -c --arg f "$1" '[.sites[] | select(any(.frames[]; .function | startswith($f)))] |
      [map(.allocs), map(.allocated_bytes), map(.live_at_peak_bytes), map(.live_at_end_blocks), map(.live_at_end_bytes)] | map(add)' w.json
  }
  # At the peak, the first row of the last round is still live, and `kept` contains a name of each
  # earlier round.
  [ "$(of take_row)" = '[1000,96000,9600,99,9504]' ]
  [ "$(of take_name)" = '[510,16320,1888,60,1920]' ]
  # The trace includes the child, which starts without pool blocks.
  "$HEAPTAPE" stat --by pool t.ht >out
  grep -q 'take_row' out
  "$HEAPTAPE" stat --by pool --format folded t.htw | grep -q '^.*main.*;take_name.* [0-9]*$'
  heaptape stat --by site t.htw
  [[ "$output" != *take_row* ]]
}

@test "pools: a note if there are none" {
  pools quietly
  heaptape stat --by pool t.htw
  fails_with 1 "t.htw: no pool blocks were recorded (the program must call heaptape_pool_alloc)"
  heaptape stat --by pool --from 1 t.htw
  usage_fails "--from and --to require --by site"
  "$HEAPTAPE" record -q -f --aggregate -o a.hta -- "$HEAPTAPE_PROGRAMS/pools"
  heaptape stat --by pool a.hta
  fails_with 1 "a.hta: is an aggregate, which has no pools"
}

# The trace contains hand-written calls that contradict each other.
@test "pools: reused addresses without a free, and calls on unknown blocks" {
  {
    echo "process 100 prog"
    echo "0 1000 pool.alloc align=7 size=100 result=65536"
    echo "0 2000 pool.alloc align=7 size=200 result=65536"
    echo "0 3000 pool.free align=9 ptr=65536"
    echo "0 4000 pool.free align=7 ptr=65536"
    echo "0 5000 pool.alloc align=8 size=50 result=0"
    echo "0 6000 pool.alloc align=8 size=60 result=131072"
    echo "0 7000 pool.reset align=8"
    echo "0 8000 pool.reset align=8"
    echo end
  } | "$HEAPTAPE_PROGRAMS/make_trace" t.ht
  "$HEAPTAPE" convert -q -o t.htw t.ht
  "$HEAPTAPE" check -q t.htw
  "$HEAPTAPE" dump t.htw | sed 's/.* pool/pool/' >lines
  diff - lines <<'END'
pool.alloc(pool=1, size=100)
pool.free(pool=1, size=100)
pool.alloc(pool=1, size=200)
pool.free(pool=1, size=200)
pool.free(pool=1, size=0)
pool.alloc(pool=3, size=50)
pool.alloc(pool=3, size=60)
pool.reset(pool=3, size=60)
pool.reset(pool=3, size=0)
END
}

@test "pools: pools of merged workloads are distinct" {
  for pid in 100 200; do
    { echo "process $pid prog"; echo "0 1000 pool.alloc align=7 size=$pid result=65536"; echo "0 2000 pool.reset align=7"; echo end; } |
      "$HEAPTAPE_PROGRAMS/make_trace" $pid.ht
    "$HEAPTAPE" convert -q -o $pid.htw $pid.ht
  done
  "$HEAPTAPE" merge -q -o m.htw 100.htw 200.htw
  "$HEAPTAPE" check -q m.htw
  "$HEAPTAPE" dump m.htw | grep -o 'pool.reset.*' | sort >lines
  [ "$(grep -c size=100 lines),$(grep -c size=200 lines),$(sed 's/,.*//' lines | sort -u | wc -l)" = 1,1,2 ]
}

@test "pools: segments, the reader library and tables include them" {
  skip_under_sanitizer
  mkdir d
  "$HEAPTAPE" record -q -o 'd/%n.ht' --segment 1M -- "$HEAPTAPE_PROGRAMS/pools"
  [ "$(count pool.alloc d)" -eq 1511 ]
  record "$HEAPTAPE_PROGRAMS/pools"
  "$HEAPTAPE" convert -q -f -o t.htw t.ht
  "$HEAPTAPE" sql t.htw "select kind, count(*) from events where kind like 'pool%' group by kind order by kind" >out
  grep -q 'pool.alloc.*1510' out
  "$HEAPTAPE" export -q --format json -o t.json t.ht
  [ "$(grep -c '"pool.alloc"' t.json)" -eq 1511 ]
}
