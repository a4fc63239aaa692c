load trace

# all_there MANY: the trace has MANY calls of malloc and free.
all_there() {
  [ "$(count_lines | tr '\n' ,)" = "free 5050 $1,malloc 5050 $1," ] || { count_lines; false; }
}

@test "exit, _exit, abort and SIGKILL lose nothing" {
  skip_under_sanitizer
  for end in exit:0 _exit:3 abort:134 kill:137; do
    record "$HEAPTAPE_PROGRAMS/ends" "${end%:*}" 12345
    [ "$status" -eq "${end#*:}" ]
    all_there 12345
  done
}

@test "a last chunk that is exactly full, one or two words short, and just over" {
  skip_under_sanitizer
  # Each call is recorded in one word. A few more words contain times, depending on the speed of the
  # machine.
  # shellcheck disable=SC2016
  record sh -c 'n=4040; while [ $n -le 4095 ]; do "$0" _exit $n; n=$((n + 1)); done' "$HEAPTAPE_PROGRAMS/ends"
  all_there $((56 * (4040 + 4095) / 2))
  record "$HEAPTAPE_PROGRAMS/ends" _exit 8184
  all_there 8184
}

@test "SIGKILL from outside during the calls" {
  skip_under_sanitizer
  # shellcheck disable=SC2016
  record sh -c '"$0" exit 0 slowly & until n=$(od -An -tu8 -N8 count 2>&1) && [ ${n:-0} -gt 1000 ]; do sleep 0.05; done
    kill -9 $!; wait' "$HEAPTAPE_PROGRAMS/ends"
  read -r counted < <(od -An -tu8 -N8 count)
  read -r _ _ taken < <(count_lines | grep malloc)
  [ "$counted" -gt 1000 ]
  # The last call may be recorded, but not counted.
  [ $((taken - counted)) -ge 0 ]
  [ $((taken - counted)) -le 1 ]
}
