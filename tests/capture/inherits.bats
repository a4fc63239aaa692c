load trace

# Prints the number and the bytes of blocks with sizes of TOLD_SIZE, at the start and at the end of
# a workload.
told_blocks() {
  "$HEAPTAPE" dump "$1" | awk '
    function special(size) { return size >= 5050 && size % 1009 == 5 }
    { slot = $0; sub(/.*#/, "", slot); size = $0; sub(/^[^(]*\(/, "", size) }
    $4 ~ /^free\(/ { sub(/\).*/, "", slot); delete live[slot]; next }
    # The first argument of realloc is the slot, and of aligned_alloc the alignment.
    $4 ~ /^(realloc|aligned_alloc)\(/ { sub(/^[^,]*, /, "", size) }
    { size += 0; live[slot] = size }
    $4 ~ /^preexisting\(/ && special(size) { blocks++; bytes += size }
    END {
      for (i in live) if (special(live[i])) { n++; sum += live[i] }
      print blocks + 0, bytes + 0, n + 0, sum + 0
    }'
}

# run_way WAY CHILDREN: each child's workload has the reported blocks, and no free without a block.
run_way() {
  record "$HEAPTAPE_PROGRAMS/inherits" "$1"
  [ "$status" -eq 0 ]
  [ "$(wc -l <told)" -eq "$2" ]
  "$HEAPTAPE" convert -q --strict --pid all -o w.%p.htw t.ht
  while read -r pid blocks; do
    "$HEAPTAPE" check -q "w.$pid.htw"
    told_blocks "w.$pid.htw" >recorded
    diff <(echo "$blocks") recorded
  done <told
  "$HEAPTAPE" stat --json t.ht >stat.json
  [ "$(jq '[.processes[].unmatched_frees] | add' stat.json)" -eq 0 ]
}

@test "at ten points of the parent's life" {
  skip_under_sanitizer
  run_way points 10
}

@test "blocks of other threads, while others are inside malloc" {
  skip_under_sanitizer
  run_way threads 5
}

@test "a fork of a fork" {
  skip_under_sanitizer
  run_way nested 1
}

@test "a fork of a fork without calls" {
  skip_under_sanitizer
  run_way silent 1
}

@test "a child with its first call after its parent's exit" {
  skip_under_sanitizer
  run_way orphan 1
}

@test "raw clone" {
  skip_under_sanitizer
  run_way clone 1
}

@test "recording goes on in a child whose parent pauses after the fork" {
  skip_under_sanitizer
  run_way pause 1
}

@test "a child that calls exec at once costs nothing" {
  skip_under_sanitizer
  record "$HEAPTAPE_PROGRAMS/inherits" exec
  [ "$status" -eq 0 ]
  "$HEAPTAPE_PROGRAMS/trace_lines" -p t.ht >processes
  [ "$(awk '$2 != 0' processes | wc -l)" -eq 0 ]
}
