# Segments of a recording: together they equal the trace in one file.
bats_require_minimum_version 1.5.0
load ../helper

golden=$HEAPTAPE_SOURCE/tests/golden

# segment TRACE BYTES: writes segments to s/.
segment() {
  rm -rf s
  mkdir s
  segment_bytes=$2
  "$HEAPTAPE_PROGRAMS/parts_of_trace" segments s/%n.ht "$2" <"$1"
}

# part_of N TRACE: prints 1/N of the size of the trace. The size depends on the load: a busy recorder
# writes fewer and larger frames, which compress better.
part_of() {
  echo $(($(stat -c %s "$2") / $1))
}

# figures FILE: all figures that do not depend on the file.
figures() {
  "$HEAPTAPE" stat --json "$1" 2>/dev/null | jq -S 'del(.file, .file_bytes, .bytes_per_event)'
}

# is_whole TRACE: the segments have the events, figures and call sites of the trace.
is_whole() {
  diff <("$HEAPTAPE" dump "$1") <("$HEAPTAPE" dump s)
  has_figures_of "$1"
}

# is_recorded TRACE: as is_whole, for a recording of threads. A thread may be preempted between a
# timestamp and its record. Such a record is late in the trace, but not in the segments, and figures
# that depend on the order of the events differ.
is_recorded() {
  local keys='.events, .by_kind, .requested_bytes, .live_at_end_bytes, .live_at_end_blocks, .duration_ns'
  if cmp -s <("$HEAPTAPE" dump "$1") <("$HEAPTAPE" dump s); then
    has_figures_of "$1"
    return
  fi
  ! in_order "$1" || is_whole "$1"
  diff <("$HEAPTAPE" dump "$1" | sort) <("$HEAPTAPE" dump s | sort)
  diff <(figures "$1" | jq "$keys") <(figures s | jq "$keys")
}

# in_order TRACE: each event is printed at its timestamp.
in_order() {
  "$HEAPTAPE" dump --format json "$1" | grep -o '"time_ns":[0-9]*' | cut -d: -f2 | sort -nc
}

has_figures_of() {
  diff <(figures "$1") <(figures s)
  "$HEAPTAPE" stat --by site --top 0 --json "$1" 2>/dev/null | jq .sites >whole.sites
  diff whole.sites <("$HEAPTAPE" stat --by site --top 0 --json s 2>/dev/null | jq .sites)
}

# Each segment is a trace that begins with the live blocks, and ends with the live blocks at the
# start of the next segment.
are_traces() {
  local file
  for file in s/*.ht; do
    "$HEAPTAPE" check -q "$file"
    "$HEAPTAPE" stat --json "$file" >stat.json
    [ "$(jq -c '[([.processes[].unmatched_frees] | add // 0), .lost_records]' stat.json)" = "[0,0]" ]
    # A segment may be full before its first event, with the starts and ends of processes and lists of
    # live blocks. Only the last segment may be smaller: it may contain just the end of the recording.
    if [ "$(jq .events stat.json)" -eq 0 ]; then
      [ "$(stat -c %s "$file")" -ge $((segment_bytes * 9 / 10)) ] || [ "$file" = "s/$(ls s | sort -n | tail -n 1)" ]
      continue
    fi
    "$HEAPTAPE" convert -q -f "$file" -o one.htw
    "$HEAPTAPE" check -q one.htw
  done
}

@test "segments: of threads, together and each alone" {
  skip_under_sanitizer
  "$HEAPTAPE" record -q -z lz4 --stacks=8 -o t.ht -- "$HEAPTAPE_PROGRAMS/paced" 2 0 800
  segment t.ht "$(part_of 4 t.ht)"
  [ "$(ls s | wc -l)" -ge 3 ]
  is_recorded t.ht
  are_traces
  "$HEAPTAPE" convert -q t.ht -o whole.htw
  "$HEAPTAPE" convert -q s -o joined.htw
  diff <("$HEAPTAPE" dump whole.htw) <("$HEAPTAPE" dump joined.htw)
  "$HEAPTAPE" report -q -o s.html s
  [ -s s.html ]
  run -0 "$HEAPTAPE" check s
}

@test "segments: of processes that fork" {
  skip_under_sanitizer
  "$HEAPTAPE" record -q -z lz4 --stacks=8 -o t.ht -- "$HEAPTAPE_PROGRAMS/inherits" points >/dev/null
  segment t.ht 20000
  [ "$(ls s | wc -l)" -ge 2 ]
  is_recorded t.ht
  are_traces
}

# total: prints the sum of the numbers in the input.
total() {
  awk '{ n += $1 } END { printf "%d\n", n }'
}

# events FOLDER: the number of events in all files, without the listed blocks.
events() {
  local file
  for file in "$1"/*.ht; do
    "$HEAPTAPE" dump --format json "$file" | grep -vc '"kind":"preexisting"'
  done | total
}

@test "segments: no event is repeated, and sizes are within 10 %" {
  skip_under_sanitizer
  "$HEAPTAPE" record -q -z lz4 -o t.ht -- "$HEAPTAPE_PROGRAMS/churn_mt" 2 260000
  segment t.ht 1048576
  [ "$(ls s | wc -l)" -ge 4 ]
  is_recorded t.ht
  are_traces
  stat -c '%s %n' $(ls -v s/*.ht) >sizes
  cat sizes
  # The last one is shorter.
  [ "$(head -n -1 sizes | awk '$1 < 0.9 * 1048576 || $1 > 1.1 * 1048576' | wc -l)" -eq 0 ]
  [ "$(events s)" -eq "$("$HEAPTAPE" dump --format json t.ht | grep -vc '"kind":"preexisting"')" ]
}

@test "segments: with many live blocks, lists are at most 3/4 of the new data" {
  skip_under_sanitizer
  "$HEAPTAPE" record -q -z lz4 -o t.ht -- "$HEAPTAPE_PROGRAMS/live_blocks" 100000 600000
  segment t.ht 1000000000
  [ "$(ls s | wc -l)" -eq 1 ]
  one=$(stat -c %s s/1.ht)
  segment t.ht 1048576
  [ "$(ls s | wc -l)" -ge 4 ]
  is_whole t.ht
  are_traces
  all=$(stat -c %s s/*.ht | total)
  echo "$one $all"
  # The last segment has a list too, and may have no new data.
  [ "$((10 * all))" -le $((19 * one)) ]
}

@test "segments: of small recordings" {
  for trace in trace-1 stacks-1 stacks-2 pages-1; do
    segment "$golden/$trace.ht" 1
    is_whole "$golden/$trace.ht"
  done
  # The last segment has maps of pages.
  diff <("$HEAPTAPE" stat --rss --json "$golden/pages-1.ht") <("$HEAPTAPE" stat --rss --json s)
  [ "$("$HEAPTAPE" stat --rss --json s | jq .page_maps)" -gt 0 ]
}

@test "segments: without the first ones, the rest begins with the live blocks" {
  skip_under_sanitizer
  "$HEAPTAPE" record -q -z lz4 -o t.ht -- "$HEAPTAPE_PROGRAMS/paced" 2 0 800
  segment t.ht "$(part_of 6 t.ht)"
  [ "$(ls s | wc -l)" -ge 4 ]
  "$HEAPTAPE" dump s | sed 's/ +[0-9.]* / /' >whole.txt
  # Remove all but the last two.
  (cd s && ls -v | head -n -2 | xargs rm)
  "$HEAPTAPE" dump s | grep -v ' preexisting(' | sed 's/ +[0-9.]* / /' >part.txt
  [ "$(wc -l <part.txt)" -lt "$(wc -l <whole.txt)" ]
  [ -s part.txt ]
  tail -n "$(wc -l <part.txt)" whole.txt | cmp - part.txt
  [ "$("$HEAPTAPE" stat --json s | jq .live_at_end_bytes)" -eq "$("$HEAPTAPE" stat --json t.ht | jq .live_at_end_bytes)" ]
}

@test "segments: the last one is still being written" {
  segment "$golden/trace-1.ht" 1
  last=$(ls s | sort -n | tail -1)
  head -c "$(($(stat -c %s "s/$last") - 60))" "s/$last" >"s/$last.part"
  rm "s/$last"
  run -0 "$HEAPTAPE" dump s
  "$HEAPTAPE" stat s >/dev/null
}

# refuse LINE: stat refuses the directory with only this line.
refuse() {
  run -1 "$HEAPTAPE" stat s
  [ "$output" = "heaptape: $1" ]
  run -1 "$HEAPTAPE" convert s -o out.htw
  [ "$output" = "heaptape: $1" ]
}

@test "segments: missing, truncated and foreign ones, or an empty folder" {
  "$HEAPTAPE" import -q --format mtrace --trace -o t.ht "$HEAPTAPE_SOURCE/tests/foreign/mt2.mtrace"
  segment t.ht 1
  [ "$(ls s | wc -l)" -ge 3 ]
  mv s/2.ht two
  refuse "s: segment 2 of the recording is missing (move the later segments to another directory to read them)"
  mkdir behind
  cp s/[3-9]*.ht behind
  "$HEAPTAPE" check -q behind/3.ht
  "$HEAPTAPE" stat behind >/dev/null
  head -c "$(($(stat -c %s two) - 60))" two >s/2.ht
  run -1 "$HEAPTAPE" stat s
  [[ "$output" == "heaptape: s/2.ht: "*"cut off"* ]]
  [ "${#lines[@]}" -eq 1 ]
  cp "$golden/trace-1.ht" s/2.ht
  refuse "s/2.ht: is not a segment of a recording"
  rm s/*
  refuse "s: is a directory without segments of a recording (NAME.ht)"
}
