load replay_helper

# Replays on the guard allocator: no page of a large block may be touched before its allocation or
# after its free.

# needs PROGRAM: skips the test if PROGRAM is missing.
needs() {
  skip_under_sanitizer
  command -v "$1" >where || skip "no $1"
}

# use STATEMENT: runs it in Python on the guard allocator with `p`, a block of `n` bytes, and `l`,
# the C library.
use() {
  cat >use.py <<PY
import ctypes
l = ctypes.CDLL(None)
l.malloc.restype = l.realloc.restype = ctypes.c_void_p
l.malloc.argtypes, l.free.argtypes = [ctypes.c_size_t], [ctypes.c_void_p]
l.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
n = 100000
p = l.malloc(n)
ctypes.memset(p, 65, n)
$1
PY
  LD_PRELOAD=$(find "$HEAPTAPE_BUILD" -name libheaptape-guard.so) run /usr/bin/python3 use.py
}

# guarded COMMAND...: records it, and replays its largest process on the guard allocator.
guarded() {
  "$HEAPTAPE" record -q -f -o t.ht -- "$@" >out
  "$HEAPTAPE" convert -q -f -o t.htw t.ht
  heaptape replay -q -r 1 --no-latency -a guard t.htw
  [ "$status" -eq 0 ]
}

@test "the guard allocator ends a use outside a block's lifetime" {
  [ -x /usr/bin/python3 ] || skip "no python3"
  use 'q = l.realloc(p, 2 * n); ctypes.memset(q + n, 66, n); print(ctypes.string_at(q + n - 1, 2)); l.free(q)'
  [ "$status" -eq 0 ] && [ "$output" = "b'AB'" ]
  use 'l.free(p); ctypes.memset(p, 1, 1)'
  [ "$status" -eq 139 ]
  use 'ctypes.memset(p + n + 16, 1, 1)'
  [ "$status" -eq 139 ]
  use 'l.realloc(p, 2 * n); ctypes.memset(p, 1, 1)'
  [ "$status" -eq 139 ]
  use 'l.free(p); l.free(p)'
  [ "$status" -eq 139 ]
  use 'l.free(p + 16)'
  [ "$status" -eq 134 ] && [[ $output == *"not the start of a block"* ]]
}

@test "a block that one thread uses in steps, and another one frees" {
  for options in "" "--threads one" "--speed x1000 --idle 0" "--memory 64K"; do
    # shellcheck disable=SC2086 # two words
    heaptape compare -q -r 1 --no-latency -a guard -a glibc $options "$BATS_TEST_DIRNAME/../replay/late-use.htw"
    [ "$status" -eq 0 ] || { echo "$options: $output" && return 1; }
  done
}

@test "every kind of call, and preexisting blocks, on the guard allocator" {
  make_workload kinds 4 20000
  heaptape replay -q -r 1 --no-latency -a guard w.htw
  [ "$status" -eq 0 ]
  make_workload churn 4 20000 30
  heaptape replay -q -r 1 --no-latency -a guard w.htw
  [ "$status" -eq 0 ]
}

@test "zstd -T2 and xz -T2, whose threads exchange buffers, on the guard allocator" {
  needs zstd
  find /usr/lib/ -name '*.so*' -type f -size -2000k -exec cat {} + 2>/dev/null | head -c 3000000 >in || true
  guarded zstd -q -5 -T2 -B600000 -f in -o in.zst
  guarded xz -0 -T2 --block-size=500000 -k -f in
}
