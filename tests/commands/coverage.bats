# The share of bytes whose stacks reach the program.

load ../helper

# Prints the coverage of a process with a known heap. The program allocates 6,000 bytes, and 1,000
# of them are live at the end. A stack in a system library allocates OTHER bytes, which are all live
# at the end.
json() {
  cat <<END
{"kind":"heaptape.module","pid":7,"tid":7,"time_ns":1,"ptr":"0x10000","size":4096,"offset":0,"text":"00 /home/me/app"}
{"kind":"heaptape.module","pid":7,"tid":7,"time_ns":1,"ptr":"0x20000","size":4096,"offset":0,"text":"00 /usr/lib/libnoise.so.1"}
{"kind":"heaptape.stack","pid":7,"tid":7,"time_ns":1,"site":1,"frames":["0x20010","0x10010"]}
{"kind":"heaptape.stack","pid":7,"tid":7,"time_ns":1,"site":2,"frames":["0x20010","0x20020"]}
{"kind":"malloc","pid":7,"tid":7,"time_ns":2,"size":5000,"result":"0xa0000","site":1}
{"kind":"malloc","pid":7,"tid":7,"time_ns":3,"size":1000,"result":"0xb0000","site":1}
END
  [ "$1" -eq 0 ] || echo '{"kind":"malloc","pid":7,"tid":7,"time_ns":4,"size":'"$1"',"result":"0xc0000","site":2}'
  echo '{"kind":"free","pid":7,"tid":7,"time_ns":5,"ptr":"0xa0000"}'
}

import() {
  json "$1" >t.json
  "$HEAPTAPE" import -q -f --format json -o t.htw t.json
}

@test "stat: the share of each, and where the other stacks end" {
  import 2000
  "$HEAPTAPE" stat -v t.htw >text
  grep -q "^bytes whose stack reaches the program's own code$" text
  grep -qE '^  allocated +5\.9 KiB +75\.0 %$' text
  grep -qE '^  live at peak +5\.9 KiB +75\.0 %$' text
  grep -qE '^  live at end +1000 B +33\.3 %$' text
  grep -qE '^ +2\.0 KiB +2\.0 KiB +2\.0 KiB +1  /usr/lib/libnoise\.so\.1$' text
  "$HEAPTAPE" stat --by site t.htw | grep -qE '^  live at end +1000 B +33\.3 %$'
  for options in --json '--by site --format json'; do
    # shellcheck disable=SC2086
    "$HEAPTAPE" stat $options t.htw | jq -c .stack_coverage >json
    diff json - <<'END'
{"all":{"allocated_bytes":8000,"live_at_peak_bytes":8000,"live_at_end_bytes":3000},"reached":{"allocated_bytes":6000,"live_at_peak_bytes":6000,"live_at_end_bytes":1000},"loading":{"allocated_bytes":0,"live_at_peak_bytes":0,"live_at_end_bytes":0},"threads":{"allocated_bytes":0,"live_at_peak_bytes":0,"live_at_end_bytes":0},"before":{"allocated_bytes":0,"live_at_peak_bytes":0,"live_at_end_bytes":0},"ends":[{"object":"/usr/lib/libnoise.so.1","stacks":1,"allocated_bytes":2000,"live_at_peak_bytes":2000,"live_at_end_bytes":2000}]}
END
  done
}

@test "stat: allocations by library constructors are a separate share" {
  # The loader's stack comes first.
  {
    json 0 | sed -n -e 1,2p | sed 's|libnoise.so.1|ld-linux-x86-64.so.2|'
    json 0 | sed -n -e 4p -e 3p | tac
    json 2000 | sed -n -e 7p -e 5,6p | sort -r
  } >t.json
  "$HEAPTAPE" import -q -f --format json -o t.htw t.json
  "$HEAPTAPE" stat -v t.htw >text
  grep -q '^bytes that constructors of libraries allocated, before the program' text
  [ "$(grep -cE '^  live at end +5\.9 KiB +75\.0 %$' text)" -eq 1 ]
  [ "$(grep -cE '^  live at end +2\.0 KiB +25\.0 %$' text)" -eq 1 ]
  run grep -e 'other stacks' text
  expect "no other stacks" [ "$status" -eq 1 ]
}

@test "stat: no line about other stacks without such stacks, none about stacks without call sites" {
  import 0
  "$HEAPTAPE" stat -v t.htw >text
  grep -qE '^  allocated +5\.9 KiB +100\.0 %$' text
  run grep -e 'other stacks' text
  expect "no other stacks" [ "$status" -eq 1 ]
  grep -v heaptape t.json | sed 's/,"site":1//' >none.json
  "$HEAPTAPE" import -q -f --format json -o none.htw none.json
  "$HEAPTAPE" stat -v none.htw >text
  run grep -e 'stack reaches' text
  expect "no line about stacks" [ "$status" -eq 1 ]
  [ "$("$HEAPTAPE" stat --json none.htw | jq 'has("stack_coverage")')" = false ]
}

@test "stat: a workload with truncated call sites has no line about stacks" {
  import 2000
  # Truncate the file within the frame of call sites, which begins with these bytes.
  at=$(LC_ALL=C grep -abo "$(printf 'HTw1\006')" t.htw | head -n 1 | cut -d : -f 1)
  head -c $((at + 60)) t.htw >cut.htw
  heaptape stat --json cut.htw
  if [ "$status" -eq 0 ]; then
    [ "$(jq 'has("stack_coverage")' <<<"$output")" = false ]
  fi
}

@test "stat, record: shares are called estimates only for sampled stacks" {
  skip_under_sanitizer
  heaptape record -v --stacks=sample:64 -o t.ht -- "$HEAPTAPE_PROGRAMS/stacks" deep 12
  [[ "$stderr" == *"stacks reach the program's own code for "*" (estimated from sampled stacks)"* ]]
  heaptape record -v --stacks -o full.ht -- "$HEAPTAPE_PROGRAMS/stacks" deep 12
  [[ "$stderr" == *"stacks reach the program's own code for "* && "$stderr" != *estimate* ]]
  "$HEAPTAPE" stat -v t.ht | grep -q "^bytes whose stack reaches the program's own code (estimated from sampled stacks)$"
  "$HEAPTAPE" stat -v full.ht | grep -q "^bytes whose stack reaches the program's own code$"
  [ "$("$HEAPTAPE" stat --json t.ht | jq .stack_coverage.stack_sample_bytes)" -eq 64 ]
  [ "$("$HEAPTAPE" stat --json full.ht | jq '.stack_coverage | has("stack_sample_bytes")')" = false ]
}

@test "record -v: prints the share at the end" {
  skip_under_sanitizer
  heaptape record -v --stacks -o t.ht -- "$HEAPTAPE_PROGRAMS/strings"
  has "$stderr" "heaptape: stacks reach the program's own code for 9"
  has "$stderr" "% of allocated bytes, 9"
  has "$stderr" "% of bytes live at the peak"
  # libstdc++ allocates a reserve before main.
  has "$stderr" "heaptape: constructors of libraries allocated "
  [[ "$stderr" != *"stacks of"* ]]
  heaptape record -v --stacks -f -o t.ht -- "$HEAPTAPE_PROGRAMS/stacks" deep 12
  has "$stderr" "heaptape: stacks reach the program's own code for 100.0 % of allocated bytes, 100.0 % of bytes live at the peak"
  [[ "$stderr" != *"constructors of libraries"* ]]
  [[ "$stderr" != *"stacks of"* ]]
  # A share that rounds to 0.0 % is not printed.
  printf '#include <stdlib.h>\nint main(int argc, char **argv) { free(malloc(atoi(argv[1]))); return 0; }\n' >main.c
  gcc -fno-builtin -Wl,--no-as-needed -o main main.c -lstdc++
  heaptape record -v --stacks -f -o t.ht -- ./main 100000
  has "$stderr" "heaptape: constructors of libraries allocated "
  heaptape record -v --stacks -f -o t.ht -- ./main 1000000000
  [[ "$stderr" != *"constructors of libraries"* ]]
}

@test "record: no line about stacks if they reach the program" {
  skip_under_sanitizer
  local program
  for program in "$HEAPTAPE_PROGRAMS/strings" "$HEAPTAPE_PROGRAMS/stacks deep 12" bash "perl -v" "ls -R /etc" "git --version" \
    "sort /etc/passwd" "python3 -c 1" "gcc --version" "find /etc" "awk BEGIN{}" "sed -n p /etc/passwd"; do
    command -v "${program%% *}" >/dev/null || continue
    # shellcheck disable=SC2086
    heaptape record --stacks -f -o t.ht -- $program </dev/null
    expect "$program" [ "${#stderr_lines[@]}" -eq 1 ]
    [[ "$stderr" == "heaptape: recorded "* ]]
  done
}

@test "record: names the places where stacks end outside the program" {
  skip_under_sanitizer
  [ "$(uname -m)" = x86_64 ] || skip "the code is for x86-64"
  # Generated code that calls malloc(5000) with an invalid frame pointer.
  cat >ends.c <<'END'
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
int main(void)
{
    static const unsigned char code[] = {0x55, 0x31, 0xed, 0x48, 0x89, 0xf8, 0xbf, 0x88, 0x13, 0, 0, 0xff, 0xd0, 0x5d, 0xc3};
    void *at = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(at, code, sizeof code);
    free(malloc(15000));
    free(((void *(*)(void *(*)(size_t)))at)(malloc));
    return 0;
}
END
  gcc -fno-builtin -o ends ends.c
  heaptape record --stacks -o t.ht -- ./ends
  has "$stderr" "heaptape: stacks of 25.0 % of allocated bytes, 0.0 % of bytes live at the peak end before the program's own code: in [code without a file] (4.9 KiB allocated) (try 'heaptape stat -v t.ht')"
  [ "${#stderr_lines[@]}" -eq 2 ]
  # The incomplete stacks have few of the allocated bytes, but most bytes at the peak.
  sed 's/free(malloc(15000));/for (int i = 0; i < 2000; i++) free(malloc(1000));/; s/free(((void \*(\*)(void \*(\*)(size_t)))at)(malloc));/((void *(*)(void *(*)(size_t)))at)(malloc);/' ends.c >peak.c
  gcc -fno-builtin -o peak peak.c
  heaptape record --stacks -f -o t.ht -- ./peak
  has "$stderr" "heaptape: stacks of 0.2 % of allocated bytes, 100.0 % of bytes live at the peak, 100.0 % of bytes live at the end end before the program's own code: "
  heaptape record --stacks -q -f -o t.ht -- ./ends
  [ -z "$stderr" ]
  heaptape record -f -o t.ht -- ./ends
  [ "${#stderr_lines[@]}" -eq 1 ]
}
