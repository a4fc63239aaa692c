load trace

# Programs behave the same with and without the recorder.

@test "errno and results of every wrapper, on success and on failure" {
  skip_under_sanitizer
  [ -x "$HEAPTAPE_PROGRAMS/kept" ] || skip "no C++ compiler"
  "$HEAPTAPE_PROGRAMS/kept" >want
  [ "$(wc -l <want)" -gt 40 ]
  for options in '' '--maps --usable --stacks=8' '--start=paused' '--lossy -z none'; do
    record_options=$options record "$HEAPTAPE_PROGRAMS/kept"
    [ "$status" -eq 0 ]
    diff want told
  done
}

@test "the same on other allocators" {
  skip_under_sanitizer
  [ -x "$HEAPTAPE_PROGRAMS/kept" ] || skip "no C++ compiler"
  ran=0
  for name in jemalloc tcmalloc_minimal; do # mimalloc, built as C, aborts where C++ throws
    library=$(ldconfig -p | sed -n "s|.*lib$name\.so\.[0-9.]* .*=> ||p" | head -n 1)
    [ -n "$library" ] || continue
    LD_PRELOAD=$library "$HEAPTAPE_PROGRAMS/kept" >want
    record_options="-a $library --maps --usable" record "$HEAPTAPE_PROGRAMS/kept"
    [ "$status" -eq 0 ]
    diff want told
    ran=1
  done
  [ "$ran" -eq 1 ] || skip "no other allocator is installed"
}

@test "destructors of thread_local objects" {
  skip_under_sanitizer
  [ -x "$HEAPTAPE_PROGRAMS/kept" ] || skip "no C++ compiler"
  record "$HEAPTAPE_PROGRAMS/kept" tls 500
  [ "$status" -eq 0 ]
  counts_as_told
}

@test "programs that are linked with an allocator" {
  skip_under_sanitizer
  ran=0
  for name in jemalloc tcmalloc_minimal mimalloc; do
    library=$(ldconfig -p | sed -n "s|.*lib$name\.so\.[0-9.]* .*=> ||p" | head -n 1)
    [ -n "$library" ] || continue
    cc -fno-builtin -I"$HEAPTAPE_SOURCE/include" -I"$HEAPTAPE_SOURCE/tests/capture" -o linked \
      "$HEAPTAPE_SOURCE/tests/capture/ends.c" -Wl,--no-as-needed "$library"
    record ./linked exit 12345
    [ "$status" -eq 0 ]
    [ "$(count_lines | tr '\n' ,)" = "free 5050 12345,malloc 5050 12345," ]
    "$HEAPTAPE_PROGRAMS/trace_lines" -p t.ht | grep -q "lib$name"
    ran=1
  done
  [ "$ran" -eq 1 ] || skip "no other allocator is installed"
}

@test "a program that changes its folder, and a program in a removed folder" {
  skip_under_sanitizer
  mkdir away
  for go in 'cd /' 'cd away && rmdir ../away'; do
    record sh -c "$go; exec '$HEAPTAPE_PROGRAMS/forks' fork nested spawn spawn"
    [ "$status" -eq 0 ]
    counts_as_told
  done
}

@test "a disk that fills up: the written part is complete, and the program made every call in it" {
  skip_under_sanitizer
  [ "$(id -u)" -eq 0 ] || skip "only root may mount"
  mkdir small
  mount -t tmpfs -o size=3m none small 2>/dev/null || skip "cannot mount a small file system"
  status=0
  "$HEAPTAPE" record -q -z none -o small/t.ht -- "$HEAPTAPE_PROGRAMS/ends" exit 3000000 >told 2>err || status=$?
  cp small/t.ht .
  umount small
  cat err
  [ "$status" -eq 125 ]
  grep -q '^heaptape: small/t.ht: cannot write at byte [0-9]*: No space left on device$' err
  # The program made all its calls.
  [ "$(od -An -tu8 -N8 count)" -eq 3000000 ]
  "$HEAPTAPE" check --salvage -q -f -o s.ht t.ht || true
  "$HEAPTAPE_PROGRAMS/trace_lines" s.ht >lines
  read -r _ _ taken < <(count_lines | grep malloc)
  [ "$taken" -gt 50000 ]
  "$HEAPTAPE" convert -q -o s.htw s.ht
}
