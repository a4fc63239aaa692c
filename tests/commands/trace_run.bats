load ../helper

files="$HEAPTAPE_SOURCE/tests/foreign"
number='[0-9]{1,3}(,[0-9]{3})*'

# Compares with the summary of the stock trace_run, line by line.
is_summary() {
  local i wants=("^allocator [a-z]+ \(/.*\.so.*\)\$" '^sizeof ticks_t is 8$' "^$number cycles\$" "^$number usec wall time\$" "^$number usec across $1\$"
    "^$number Kb Max RSS \($number -> $number\)\$" "^$2 Kb Max Ideal RSS\$" '^$'
    "^Avg malloc time: +$number in +$3 calls\$" "^Avg calloc time: +$number in +$4 calls\$"
    "^Avg realloc time: +$number in +$5 calls\$" "^Avg free time: +$number in +$6 calls\$"
    "^Total call time: $number cycles\$")
  mapfile -t got <<<"$output"
  [ "${#got[@]}" -eq "${#wants[@]}" ]
  for i in "${!wants[@]}"; do
    expect "${wants[i]} as line $i" grep -qE "${wants[i]}" <<<"${got[i]}"
  done
}

@test "trace_run prints the stock summary" {
  skip_under_sanitizer
  heaptape trace_run "$files/mt2.wl"
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  is_summary "2 threads" 599 1,180 3 1 1,183
  # Two calls failed in the recording. Two other calls had an alignment.
  heaptape trace_run -a jemalloc - <"$files/api.wl"
  [ "$status" -eq 0 ]
  is_summary "1 thread" 597 13 2 3 14
}

@test "columns are where the stock trace_run has them" {
  skip_under_sanitizer
  heaptape trace_run "$files/synth2x.wl"
  [[ ${lines[10]} =~ ^"Avg free time: "(.{8})" in "(.{10})" calls"$ ]]
  [[ ${lines[9]} =~ ^"Avg realloc time:     0 in          1 calls"$ ]]
}

@test "trace_run refuses other files" {
  head -c 100 "$files/mt2.mtrace" >bad
  heaptape trace_run bad
  fails_with 1 "bad: expected the header of a wl file"
  heaptape trace_run none.wl
  fails_with 1 "none.wl: No such file"
  heaptape trace_run -a nothing "$files/mt2.wl"
  [ "$status" -eq 1 ]
}
