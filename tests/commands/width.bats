# On a terminal of 80 columns, no command prints a longer line.
load ../helper

setup_file() {
  [ -z "$HEAPTAPE_SANITIZED" ] || return 0
  cd "$BATS_FILE_TMPDIR" || return
  cat >a.c <<'END'
#include <stdlib.h>
__attribute__((noinline)) void *allocate_with_a_name_that_is_longer_than_a_terminal_is_wide_and_so_has_to_be_broken(size_t n) { return malloc(n); }
int main(void)
{
    for (int i = 0; i < 20000; i++) {
        char *p = allocate_with_a_name_that_is_longer_than_a_terminal_is_wide_and_so_has_to_be_broken(3000);
        *p = 1;
        if (i % 4)
            free(p);
    }
}
END
  cc -g -O1 -fno-builtin -o a a.c
  "$HEAPTAPE" record -q --stacks -o a.ht ./a >/dev/null
  "$HEAPTAPE_PROGRAMS/make_workload" a.htw churn 4 20000 >/dev/null
  "$HEAPTAPE_PROGRAMS/make_workload" b.htw churn 1 20000 >/dev/null
  "$HEAPTAPE" replay -q --json --no-latency -r 3 b.htw >glibc.json
  "$HEAPTAPE" replay -q --json --no-latency -r 3 -a glibc,MALLOC_ARENA_MAX=1 b.htw >arena.json
}

# The commands, one per line. LONG is a tunable wider than half of the terminal.
commands() {
  local command
  for command in $("$HEAPTAPE" help | awk '/^  [a-z]/ { print $1 }'); do
    echo "$command --help"
  done
  cat <<'END'
help
stat a.ht
stat a.htw b.htw
stat --brief a.ht
stat --by site a.ht
stat --by site --weight growth a.ht
stat --by site --from 10% --to 90% a.ht
stat --rss a.ht
replay -r 1 a.htw
replay -r 1 --no-latency --fragmentation --internal-fragmentation b.htw
replay -r 1 --verify b.htw
replay -r 1 missing-workload-with-a-name-that-is-long-enough-to-need-more-than-one-line.htw
compare -r 1 -a glibc -a glibc,MALLOC_ARENA_MAX=1 a.htw
compare --no-latency -a glibc -a glibc,MALLOC_ARENA_MAX=1 b.htw
compare -r 1 -a glibc -a glibc,LONG a.htw
compare -r 1 --no-latency --real -a glibc -a glibc,LONG b.htw -- true
advise --budget 1 a.htw
diff a.ht a.ht
diff --fail-on peak_live>+5% --fail-on calls>+2% a.ht a.ht
report --diff a.htw b.htw
report --pool glibc.json arena.json
report -f a.ht
check a.ht
check a.htw
allocators
convert -f -o c.htw a.ht
slice -f -o s.htw --from 10% --to 90% a.htw
anonymize -f -o n.htw a.htw
merge -f -o m.htw a.htw b.htw
export -f --format android -o e.txt a.htw
top --batch a.ht
END
}

@test "no line is wider than the terminal" {
  [ -z "$HEAPTAPE_SANITIZED" ] || skip "it would take a minute, and prints what the release build prints"
  local line command
  cp "$BATS_FILE_TMPDIR"/*.* .
  while read -r line; do
    read -ra command <<<"${line/LONG/GLIBC_TUNABLES=glibc.malloc.tcache_count=0}"
    on_terminal 80 env -u COLUMNS LC_ALL=C TERM=xterm "$HEAPTAPE" "${command[@]}" >out
    [ -s out ] || { echo "printed nothing: $line"; false; }
    # A progress line is rewritten in place.
    python3 - "$line" <<'END'
import re, sys
for text in open('out', errors='replace', newline='').read().split('\n'):
    # Shell commands are not broken.
    if re.match('  deploy: [A-Z_]+=', text):
        continue
    for part in re.sub('\x1b\\[[0-9;?]*[A-Za-z]', '', text).split('\r'):
        assert len(part) <= 80, (sys.argv[1], len(part), part)
END
  done < <(commands)
}
