# Programs in other languages, started and attached to. They begin when they read a line, and print
# the number of their allocations of 1007 to 5997 bytes whose last digit is 7, which libc's own
# allocations do not have: "malloc N", "realloc N".
load trace

setup() {
  cd "$BATS_TEST_TMPDIR" || return
}

teardown() {
  show_failure
  [ -z "${started:-}" ] || kill -9 "$started" 2>/dev/null || true
}

# Succeeds if the trace has the number of calls of each kind that the program printed.
counts_as_printed() {
  cat err out
  "$HEAPTAPE_PROGRAMS/trace_lines" t.ht |
    awk '$5 ~ /^(m|re)alloc$/ && $7 >= 1000 && $7 < 6000 && $7 % 10 == 7 { n[$5]++ } END { for (i in n) print i, n[i] }' | sort >recorded
  grep alloc out | sort >printed
  [ -s printed ] && diff printed recorded
}

# records PROGRAM: records the program from its start, and attached before it begins.
records() {
  local recorder
  echo >line
  timeout 120 "$HEAPTAPE" record -q -f -o t.ht -- "$1" <line >out 2>err
  counts_as_printed
  skip_without_ptrace
  mkfifo to
  "$1" <to >out 3>&- &
  started=$!
  exec 7>to
  "$HEAPTAPE" record -q -f -o t.ht --pid "$started" 2>err 3>&- 7>&- &
  recorder=$!
  wait_until maps_heaptape "$started" || { cat err; return 1; }
  wait_until has_attached "$started" "$recorder" 0 || { cat err; return 1; }
  echo >&7
  exec 7>&-
  wait "$started"
  wait "$recorder"
  counts_as_printed
}

# rust_program ALLOC REALLOC: writes a program whose threads use these functions, through an
# allocator that counts the calls.
rust_program() {
  cat <<END
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
extern "C" {
    fn _rjem_malloc(size: usize) -> *mut u8;
    fn _rjem_realloc(old: *mut u8, size: usize) -> *mut u8;
    fn _rjem_free(p: *mut u8);
}
static ALLOCS: AtomicUsize = AtomicUsize::new(0);
static REALLOCS: AtomicUsize = AtomicUsize::new(0);
fn count(n: &AtomicUsize, size: usize) {
    if (1000..6000).contains(&size) && size % 10 == 7 { n.fetch_add(1, Relaxed); }
}
struct A;
unsafe impl GlobalAlloc for A {
    unsafe fn alloc(&self, l: Layout) -> *mut u8 { count(&ALLOCS, l.size()); $1 }
    unsafe fn realloc(&self, p: *mut u8, l: Layout, size: usize) -> *mut u8 { let _ = l; count(&REALLOCS, size); $2 }
    unsafe fn dealloc(&self, p: *mut u8, l: Layout) { let _ = l; $3 }
}
#[global_allocator]
static GLOBAL: A = A;
fn work() {
    let mut kept: Vec<Vec<u8>> = (0..64).map(|_| Vec::new()).collect();
    for i in 0..20000usize {
        kept[i % 64] = Vec::with_capacity(1007 + i % 300 * 10);
        if i % 10 == 0 { kept[i % 64].reserve_exact(5007 + i % 990); }
    }
    std::hint::black_box(&kept);
}
fn main() {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    let threads: Vec<_> = (0..2).map(|_| std::thread::spawn(work)).collect();
    for t in threads { t.join().unwrap(); }
    let (a, r) = (ALLOCS.load(Relaxed), REALLOCS.load(Relaxed));
    println!("malloc {}\nrealloc {}", a, r);
}
END
}

@test "Rust with its default allocator" {
  command -v rustc >/dev/null || skip "no rustc"
  rust_program "System.alloc(l)" "System.realloc(p, l, size)" "System.dealloc(p, l)" |
    sed '/^extern "C"/,/^}/d' >program.rs
  rustc -O -o program program.rs
  records ./program
}

@test "Rust with a prefixed allocator, with and without LTO" {
  local lto
  command -v rustc >/dev/null || skip "no rustc"
  rust_program "_rjem_malloc(l.size())" "_rjem_realloc(p, size)" "_rjem_free(p)" | sed 's/, System}/}/' >program.rs
  cc -O2 -Dpre_malloc=_rjem_malloc -Dpre_calloc=_rjem_calloc -Dpre_realloc=_rjem_realloc -Dpre_free=_rjem_free \
    -Dpre_usable_size=_rjem_malloc_usable_size -c -o allocator.o "$HEAPTAPE_SOURCE/tests/capture/named_library.c"
  for lto in off fat; do
    rustc -O -C lto=$lto -C link-arg=allocator.o -o program program.rs
    rm -f to
    records ./program
  done
}

@test "Go with cgo: the calls of C.malloc" {
  command -v go >/dev/null || skip "no Go"
  cat >program.go <<'END'
package main

// #include <stdlib.h>
import "C"
import ("bufio"; "fmt"; "os"; "sync"; "unsafe")

func main() {
	bufio.NewReader(os.Stdin).ReadString('\n')
	var wait sync.WaitGroup
	for t := 0; t < 2; t++ {
		wait.Add(1)
		go func() {
			defer wait.Done()
			var kept [64]unsafe.Pointer
			for i := 0; i < 5000; i++ {
				C.free(kept[i%64])
				kept[i%64] = C.malloc(C.size_t(1007 + i%300*10))
			}
		}()
	}
	wait.Wait()
	fmt.Println("malloc", 2*5000)
}
END
  export GOCACHE=$PWD/cache GOFLAGS=-mod=mod GO111MODULE=off
  go build -o program program.go
  records ./program
}
