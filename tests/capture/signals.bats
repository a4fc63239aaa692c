load trace

@test "signal handlers that allocate while a record is being written" {
  skip_under_sanitizer
  # shellcheck disable=SC2034
  record_options="-a $HEAPTAPE_PROGRAMS/libtrivial.so"
  local i interrupting=0
  # Some handlers must interrupt a record; on a busy machine, not every run has one.
  for ((i = 0; i < 10 && interrupting == 0; i++)); do
    record "$HEAPTAPE_PROGRAMS/signals" 500
    [ "$status" -eq 0 ]
    counts_as_told
    interrupting=$(awk '$4 == 1' lines | wc -l)
  done
  [ "$interrupting" -gt 0 ]
}

@test "internal calls of an allocator are not events" {
  skip_under_sanitizer
  # shellcheck disable=SC2034
  record_options="-a $HEAPTAPE_PROGRAMS/libtrivial.so"
  record "$HEAPTAPE_PROGRAMS/calls" || true
  [ "$status" -ne 2 ] # the sized forms of free belong to the allocator
  for kind in free_sized free_aligned_sized; do
    [ "$(awk -v kind="$kind" '$5 == kind && $6 != "0"' lines | wc -l)" -eq 1 ]
  done
  [ "$(awk '$5 == "calloc" && $7 == 70000' lines | wc -l)" -eq 1 ]
  [ "$(awk '$5 == "malloc" && $7 == 70000' lines | wc -l)" -eq 1 ] # the program's call
  [ "$(awk '$5 == "malloc" && $7 == 100000' lines | wc -l)" -eq 0 ]
}
