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
