# The sweep over real programs, with minimal recipes.
load ../helper

# small NAME TEXT...: writes a recipe for sh to recipes/.
small() {
  mkdir -p recipes
  printf '%s\n' programs=sh packages=dash licence=BSD-3-Clause "${@:2}" >"recipes/$1.sh"
}

# sweep BUILD ARGUMENT...
sweep() {
  run env BUILD="$1" SWEEP_RECIPES="$PWD/recipes" "$HEAPTAPE_SOURCE/tests/sweep" -a glibc "${@:2}"
}

# other_heaptape COMMAND TEXT: makes a build directory whose heaptape first runs TEXT if called with
# COMMAND.
other_heaptape() {
  mkdir -p other
  printf '#!/bin/sh\nheaptape=%s\nif [ "$1" = %s ]; then\n%s\nfi\nexec "$heaptape" "$@"\n' "$HEAPTAPE" "$1" "$2" >other/heaptape
  chmod 755 other/heaptape
}

@test "sweep: each recipe is complete" {
  (cd "$HEAPTAPE_SOURCE" && ls tests/recipes/*.sh corpus/*.sh) >files
  [ "$(grep -c ^corpus/ files)" -eq 40 ]
  [ "$(wc -l <files)" -ge 100 ]
  while read -r file; do
    run sh -euc '. "$1/corpus/recipe"
      . "$1/$2"
      [ "$programs" ] && [ "$packages" ] && [ "$licence" ] && command -v run' - "$HEAPTAPE_SOURCE" "$file"
    expect "$file" [ "$status:$output" = 0:run ]
  done <files
}

@test "sweep: a program with equal runs, and programs whose runs differ" {
  small alike 'run() { echo input >file; record sh -c "cat file; echo error >&2; exit 3" || [ $? -eq 3 ]; }'
  small output 'run() { record sh -c "date +%N"; }'
  small file 'run() { record sh -c "date +%N >file"; }'
  small varies 'varies="*"' 'run() { record sh -c "date +%N; date +%N >file"; }'
  small status 'run() { record sh -c "[ -z \"\$LD_PRELOAD\" ]" || true; }'
  small broken 'run() { echo "no input"; false; record sh -c :; }'
  small missing 'programs=no-such-program' 'run() { :; }'
  sweep "$HEAPTAPE_BUILD"
  [ "$status" -eq 1 ]
  grep -q '^alike .* ok$' <<<"$output"
  grep -q '^varies .* ok$' <<<"$output"
  for name in output file status; do
    expect "$name" grep -q "^$name .* FAILED: the program ran differently$" <<<"$output"
  done
  grep -q '^broken .* FAILED: the run without heaptape$' <<<"$output"
  grep -q '^missing .* skipped: no-such-program is not installed (dash)$' <<<"$output"
  [[ "$output" =~ "7 programs, 0 with threads, on glibc, in "[0-9]+" min: 2 ok, 4 failed, 1 skipped" ]]
  sweep "$HEAPTAPE_BUILD" varies
  [ "$status" -eq 0 ]
  sweep "$HEAPTAPE_BUILD" nothing
  [ "$status" -eq 2 ]
}

@test "sweep: a server is started, stopped and compared" {
  small server 'run() {
    start sh -c "trap \"echo ended; exit 5\" TERM; echo >ready; while :; do sleep 0.1; done"
    ready test -e ready
    stop 5
  }'
  sweep "$HEAPTAPE_BUILD" -k kept
  [ "$status" -eq 0 ]
  [ "$(cat kept/server/recorded/status)" = "program 5
recipe 0" ]
  [ "$(cat kept/server/recorded/out)" = ended ]
}

@test "sweep: commands that fail, and unexpected lines of record" {
  small one 'run() { record sh -c :; }'
  other_heaptape replay 'kill -SEGV $$'
  sweep "$PWD/other"
  [ "$status" -eq 1 ]
  [[ "$output" =~ FAILED:\ replay-[0-9]+-glibc,\ verify-[0-9]+ ]]
  other_heaptape convert 'echo "the order is ambiguous"; exit 1'
  sweep "$PWD/other"
  [ "$status" -eq 1 ]
  has "$output" "FAILED: convert"
  has "$output" "  the order is ambiguous"
  other_heaptape record 'echo "heaptape: 3 records were lost" >&2'
  sweep "$PWD/other"
  [ "$status" -eq 1 ]
  has "$output" "FAILED: line of record"
  has "$output" "  record: heaptape: 3 records were lost"
  small one 'says="[0-9] records were lost"' 'run() { record sh -c :; }'
  sweep "$PWD/other"
  [ "$status" -eq 0 ]
  has "$output" "  record: heaptape: 3 records were lost"
  other_heaptape record '"$heaptape" "$@" 2>"$HOME/err"; status=$?; sed "s/recorded [0-9]*/&1/" "$HOME/err" >&2; exit $status'
  sweep "$PWD/other"
  [ "$status" -eq 1 ]
  has "$output" "FAILED: untrue counts"
}
