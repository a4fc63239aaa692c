load trace

@test "--maps: the program's own mappings, in order, with all their arguments; errno is preserved" {
  skip_under_sanitizer
  record_options=--maps record "$HEAPTAPE_PROGRAMS/maps"
  [ "$status" -eq 0 ]
  as_told
  # Protection and kind are words.
  [ "$(awk '$5 == "mmap" && $7 == 8192 { print $13, $14 }' lines)" = "rw-p anonymous" ]
  [ "$(awk '$5 == "mmap" && $7 == 1048576 { print $13, $14 }' lines)" = "rw-s anonymous" ]
  "$HEAPTAPE" convert -q -o t.htw t.ht
  "$HEAPTAPE" stat --json t.htw >stat
  grep -q '"mmap": 3' stat
  grep -q '"brk": 1' stat
  "$HEAPTAPE" replay -q t.htw
}

@test "--maps: mappings by the allocator are left out" {
  skip_under_sanitizer
  ran=0
  for name in jemalloc tcmalloc_minimal mimalloc; do
    library=$(ldconfig -p | sed -n "s|.*lib$name\.so\.[0-9.]* .*=> ||p" | head -n 1)
    [ -n "$library" ] || continue
    record_options="--maps -a $library" record "$HEAPTAPE_PROGRAMS/maps"
    [ "$status" -eq 0 ]
    as_told
    ran=1
  done
  [ "$ran" -eq 1 ] || skip "no other allocator is installed"
}

@test "--maps: without it no mapping is recorded" {
  skip_under_sanitizer
  record "$HEAPTAPE_PROGRAMS/maps"
  [ "$status" -eq 0 ]
  grep -E '^(malloc|free) ' told >want
  mv want told
  as_told
}
