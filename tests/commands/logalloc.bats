load ../helper

# munge LOG: the stock script's output for the log, and its messages.
munge() {
  "$HEAPTAPE" import -q -k --trace -F logalloc -o log.ht "$1"
  heaptape export -F logalloc-munged log.ht
  rm log.ht
}

example() {
  cat >log <<'LOG'
18545 18545 malloc(32)=0x7f90495120e0
18545 18545 calloc(1,148)=0x7f9049537480
18545 18545 realloc(0x7f90495120e0,64)=0x7f9049536680
18545 18545 posix_memalign(256,240)=0x7f9049583300
18545 18545 jemalloc_stats()
18545 18545 free(0x7f9049536680)
LOG
}

@test "munged: the example of logalloc's README" {
  example
  munge log
  expect "status 0" [ "$status" -eq 0 ]
  expect "the README's output" [ "$output" = '1 1 malloc(32)=#1
1 1 calloc(1,148)=#2
1 1 realloc(#1,64)=#1
1 1 posix_memalign(256,240)=#3
1 1 jemalloc_stats()
1 1 free(#1)' ]
  expect "only notes about stamps" [ -z "$stderr" ]
}

@test "munged: slots are reused first in, first out; NULL has a separate slot" {
  cat >log <<'LOG'
7 7 malloc(1)=0x10
7 7 malloc(2)=0x20
7 7 malloc(3)=0x30
7 7 free(0x20)
7 7 free(0x10)
7 7 malloc(4)=0x20
7 7 realloc(0x0,5)=0x40
7 7 malloc(6)=0x50
7 7 free(0x0)
7 7 realloc(0x30,7)=0x30
7 7 free(0x20)
7 7 realloc(0x30,8)=0x30
7 7 realloc((nil),9)=0x60
LOG
  munge log
  expect "the output" [ "$output" = '1 1 malloc(1)=#1
1 1 malloc(2)=#2
1 1 malloc(3)=#3
1 1 free(#2)
1 1 free(#1)
1 1 malloc(4)=#2
1 1 realloc(#1,5)=#4
1 1 malloc(6)=#5
1 1 free(#1)
1 1 realloc(#3,7)=#3
1 1 free(#2)
1 1 realloc(#3,8)=#2
1 1 realloc(#1,9)=#3' ]
}

@test "munged: processes and threads are numbered in order of appearance" {
  cat >log <<'LOG'
900 901 malloc(1)=0x10
800 800 malloc(2)=0x10
900 900 malloc(3)=0x20
900 140187732541248 free(0x10)
800 800 free(0x10)
700 free(0x0)
900 140187732541248 malloc(4)=0x10
LOG
  munge log
  expect "the output" [ "$output" = '1 1 malloc(1)=#1
2 1 malloc(2)=#1
1 2 malloc(3)=#2
1 3 free(#1)
2 1 free(#1)
3 1 free(#1)
1 3 malloc(4)=#1' ]
}

@test "munged: dropped lines are named; a failed realloc keeps its block; a reused live address gets a new slot" {
  cat >log <<'LOG'
7 7 malloc(1)=0x10
7 7 free(0x99)
7 7 realloc(0x98,4)=0x20
7 7 free(0x20)
7 7 malloc(99)=(nil)
7 7 realloc(0x10,99)=0x0
7 7 realloc(0x10,2)=0x30
7 7 malloc(3)=0x30
7 7 free(0x30)
7 7 malloc(4)=0x40
7 7 realloc(0x40,0)=(nil)
LOG
  munge log
  expect "status 0" [ "$status" -eq 0 ]
  expect "the output" [ "$output" = '1 1 malloc(1)=#1
1 1 realloc(#1,2)=#1
1 1 malloc(3)=#2
1 1 free(#2)
1 1 malloc(4)=#2
1 1 free(#2)' ]
  has "$stderr" 'dropped "7 7 free(0x99)": its block was never allocated'
  has "$stderr" 'dropped "7 7 realloc(0x98,4)=0x20": its block was never allocated'
  has "$stderr" 'dropped "7 7 free(0x20)": its block was never allocated'
  has "$stderr" 'dropped "7 7 malloc(99)=0x0": its result is NULL'
  has "$stderr" 'dropped "7 7 realloc(0x10,99)=0x0": its result is NULL'
  has "$stderr" "5 dropped"
  has "$stderr" "1 written as free"
}

@test "logalloc: with and without thread ids, failed calls, several processes" {
  cat >log <<'LOG'
5 malloc(32)=0x1000
5 calloc(2,8)=0x2000
6 6 malloc(9)=0x1000
5 realloc(0x1000,64)=0x3000
5 aligned_alloc(64,128)=0x4000
5 memalign(64,128)=0x5000
5 valloc(10)=0x6000
5 malloc(9999999999999)=(nil)
5 calloc(9999999999,9999999999)=0x0
5 free((nil))
5 free(0x3000)
6 6 free(0x1000)
LOG
  heaptape import -F logalloc log
  expect "status 0" [ "$status" -eq 0 ]
  has "$stderr" "10 events, 1 thread,"
  "$HEAPTAPE" stat --json log.htw >stat
  has "$(cat stat)" '"unmatched_frees": 0'
  has "$(cat stat)" '"pid": 5'
  heaptape import -q -F logalloc -p 6 -o six.htw log
  [ "$("$HEAPTAPE" dump six.htw | wc -l)" -eq 2 ]
  heaptape import -q --trace -F logalloc log
  heaptape export -F logalloc log.ht
  expect "unchanged" diff <(printf '%s\n' "$output") <(sed 's/^5 \([a-z]\)/5 5 \1/; s/(nil)/0x0/' log)
}

@test "logalloc and munged: survive import, export, import" {
  example
  "$HEAPTAPE" import -q -F logalloc -o a.htw log
  "$HEAPTAPE" export -q -F logalloc -o again.log a.htw
  "$HEAPTAPE" import -q -F logalloc -o b.htw again.log
  diff <("$HEAPTAPE" dump a.htw) <("$HEAPTAPE" dump b.htw)
  "$HEAPTAPE" export -q -F logalloc-munged -o a.munged a.htw
  "$HEAPTAPE" import -q -F logalloc-munged -o c.htw a.munged
  diff <("$HEAPTAPE" dump a.htw | sed 's/^[^ ]* [^ ]* //') <("$HEAPTAPE" dump c.htw | sed 's/^[^ ]* [^ ]* //')
  "$HEAPTAPE" export -q -F logalloc-munged -o b.munged c.htw
  cmp a.munged b.munged
  "$HEAPTAPE" replay -q -a glibc c.htw
}

# refused WHAT: the log is refused with this text and no output; --keep-going imports the rest.
refused() {
  heaptape import -F "$format" -o out.htw log
  fails_with 1 "log: " "$@"
  expect "no output" [ ! -e out.htw ]
}

@test "logalloc: errors name the line" {
  format=logalloc
  try() {
    printf '7 7 malloc(1)=0x10\n%b\n7 7 free(0x10)\n' "$1" >log
    refused "expected $2" "in line 2"
    heaptape import -k -F logalloc -o out.htw log
    expect "status 0" [ "$status" -eq 0 ]
    has "$stderr" "skipped 1 invalid record, the first: log: expected $2"
    has "$stderr" "heaptape: skipped: log: expected $2"
    has "$stderr" "2 events"
    rm out.htw
  }
  try '7 7 mallok(1)=0x10' "a function of logalloc and its parenthesis, not 'mallok(1)=0x10'"
  try '7 7 malloc(1,2)=0x10' "a closing parenthesis, not ',2)=0x10'"
  try '7 7 calloc(1)=0x10' "a comma and another argument, not ')=0x10'"
  try '7 7 malloc(99999999999999999999)=0x10' "a size, not '9999999999999999'"
  try '7 7 malloc(1)=10' "an address, not '10'"
  try '7 7 malloc(1)=0x11111111111111111' "an address"
  try '7 7 free(0x10)=0x10' "the end of the line, not '=0x10'"
  try 'x' "a process id, not 'x'"
  try '' "a process id, not the end of the line"
  try '7 7 fr\0ee(0x10)' "text, found a NUL byte"
  try '99999999999 7 free(0x10)' "a process id"
  printf '7 7 malloc(1)=0x10\n7 7 malloc(1)=0x20' >log
  refused "expected a newline at its end: the file is cut off" "in line 2"
  format=logalloc-munged
  printf '1 1 malloc(1)=0x10\n' >log
  refused "expected a slot, not '0x10'" "in line 1"
}

@test "logalloc: empty, random and endless lines are refused" {
  for format in logalloc logalloc-munged android; do
    : >log
    refused "is empty"
    head -c 100000 /dev/urandom >log
    refused "expected"
    printf '\n' >log
    refused "expected"
    heaptape import -k -q -F "$format" -o out.htw log
    fails_with 1 "contains no events"
    # 1 GB without a newline: most of the file is not read, and memory stays small.
    rm log
    truncate -s 1000000000 log
    (
      [ -n "$HEAPTAPE_SANITIZED" ] || ulimit -v 200000
      exec "$HEAPTAPE" import -F "$format" -o out.htw log 2>err
    ) && false
    has "$(cat err)" "expected a line of up to"
    has "$(cat err)" "in line 1"
    (
      [ -n "$HEAPTAPE_SANITIZED" ] || ulimit -v 200000
      tr '\0' 7 <log | "$HEAPTAPE" import -F "$format" -o out.htw - 2>err
    ) && false
    has "$(cat err)" "expected a line of up to"
    rm log
  done
}

@test "logalloc: a realloc is logged after the next allocation of its block" {
  cat >log <<'LOG'
7 1 malloc(1)=0x10
7 2 malloc(2)=0x20
7 2 free(0x20)
7 2 malloc(3)=0x10
7 3 malloc(4)=0x40
7 1 realloc(0x10,5)=0x20
7 2 free(0x10)
7 3 free(0x40)
7 1 free(0x20)
LOG
  heaptape import --strict -F logalloc log
  [ "$status" -eq 0 ]
  expect "all matched" [ "$("$HEAPTAPE" stat --json log.htw | jq -c '[.unmatched_frees, .live_at_end_blocks, .order.repaired]')" = "[0,0,1]" ]
  munge log
  expect "the output" [ "$output" = '1 1 malloc(1)=#1
1 2 malloc(2)=#2
1 2 free(#2)
1 3 malloc(4)=#2
1 1 realloc(#1,5)=#1
1 2 malloc(3)=#3
1 2 free(#3)
1 3 free(#2)
1 1 free(#1)' ]
}

@test "logalloc: the first twenty bad lines are named, all are counted" {
  { seq 1000; echo '7 7 malloc(1)=0x10'; } >log
  heaptape import -k -F logalloc log
  [ "$status" -eq 0 ]
  has "$stderr" "skipped 1000 invalid records"
  has "$stderr" "in line 20"
  expect "at most twenty" [ "$(grep -c 'heaptape: skipped: ' <<<"$stderr")" -eq 20 ]
}

@test "munged: slot numbers far above the number of lines" {
  cat >log <<'LOG'
1 1 malloc(1)=#9999999999999
1 1 malloc(2)=#1
2 1 malloc(3)=#9999999999999
1 1 realloc(#9999999999999,4)=#9999999999998
1 1 free(#9999999999998)
1 1 free(#9999999999998)
1 1 free(#1)
LOG
  heaptape import -F logalloc-munged log
  [ "$status" -eq 0 ]
  expect "one free of NULL" [ "$("$HEAPTAPE" dump log.htw | grep -c 'free(NULL)')" -eq 1 ]
  expect "all matched" [ "$("$HEAPTAPE" stat --json log.htw | jq -c '[.events, .unmatched_frees, .live_at_end_blocks]')" = "[6,0,0]" ]
}
