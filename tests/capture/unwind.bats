# Compares the stacks of common programs at random allocations with libunwind.

load ../helper

setup() {
  skip_under_sanitizer
  [ "$(uname -m)" = x86_64 ] || skip "the unwind tables of other machines are not read"
  [ -e "$HEAPTAPE_PROGRAMS/libunwind-compare.so" ] || skip "libunwind-dev was not installed when this was built"
  cd "$BATS_TEST_TMPDIR" || return
}

# equal PROGRAM LEAST COMMAND...: runs COMMAND, which starts PROGRAM. Succeeds if at least LEAST
# stacks are compared, and 99.9 % of them are equal.
equal() {
  local program=$1 least=$2
  shift 2
  LD_PRELOAD=$HEAPTAPE_PROGRAMS/libunwind-compare.so UNWIND_COMPARED=compared "$@" >out 2>err || return
  cat err
  awk -v program="$program" -v least="$least" '
    $1 == program { compared += $2; differ += $3; known += $4; frames += $5 }
    END {
      printf "# %s: %d stacks compared, %d differ, %d known before, %.1f frames each\n", program, compared, differ, known,
        compared ? frames / compared : 0
      exit !(compared >= least && differ * 1000 <= compared && known * 4 >= compared)
    }' compared | tee -a /dev/fd/3
  [ "${PIPESTATUS[0]}" -eq 0 ]
}

@test "unwind: stacks of python3 equal those by libunwind" {
  PYTHONMALLOC=malloc equal python3 2000 /usr/bin/python3 -c '
import json, re
d = {str(i): [i] * 5 for i in range(3000)}
print(len(json.loads(json.dumps(d))), len(re.findall("[0-9]+", str(d))))'
  [ "$(cat out)" = "3000 18000" ]
}

@test "unwind: stacks of perl equal those by libunwind" {
  # shellcheck disable=SC2016
  equal perl 500 perl -e 'my %h; $h{$_ % 5000} .= "x$_" for 1..200000; my @s = sort map { "$_$h{$_}" } keys %h; print scalar(@s)'
  [ "$(cat out)" = 5000 ]
}

@test "unwind: stacks of cc1plus equal those by libunwind" {
  echo '#include <map>' >maps.cc
  command -v g++ || skip "no g++"
  equal cc1plus 1000 env CCACHE_DISABLE=1 g++ -c -o maps.o maps.cc
}
