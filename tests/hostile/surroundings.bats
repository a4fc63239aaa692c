# Random limits, namespaces, closed descriptors and full disks: see surroundings.bash.
# HEAPTAPE_TEST_ENVIRONMENTS is the number of environments, and HEAPTAPE_TEST_SEED is the first
# seed.
load hostile

setup_file() {
  export PATH=$HEAPTAPE_PROGRAMS:$HEAPTAPE_PROGRAMS/hostile:$PATH
  # Without /proc heaptape cannot find itself.
  HEAPTAPE_LIBEXEC=$HEAPTAPE_BUILD/src/capture
  export ENVIRONMENTS=${HEAPTAPE_TEST_ENVIRONMENTS:-20} LIBEXEC=$HEAPTAPE_LIBEXEC
}

# The reported number of lost records, if it is exact.
number_said() {
  sed -n 's/^heaptape: \([0-9 ]*\) records\? w[a-z]* lost.*$/\1/p' err | tr -d ' '
}

# Succeeds if more calls are reported as missing than were counted.
is_more_said() {
  grep -q '^heaptape: \(at least \|.* may not have been recorded\|.* could not be \(read\|opened\)\)' err ||
    grep '^heaptape: .*not recorded' err | grep -qv '([0-9]* calls\?)'
}

# is_said MISSING: the loss is reported on standard error, if that is open, or in the trace. An
# exact number must not be too small.
is_said() {
  local said
  said=$(number_said)
  if grep -q '2>&-' what; then
    return
  elif [ -n "$said" ]; then
    is_more_said || [ "$said" -ge "$1" ]
  else
    is_more_said
  fi
}

# is_too_much BURSTS THREADS: the processes of `known` report more lost calls than they can have
# made in addition to the recorded calls. A burst has 11 calls. The start and end of a process have
# up to 200 calls, and a thread has up to 64.
is_too_much() {
  "$HEAPTAPE" stat --json --brief t.ht | jq -e --argjson bursts "$1" --argjson threads "$2" '[.processes[] | select(.argv[0] // "" | endswith("known"))]
    | (map(.events + .lost_records) | add // 0) > 11 * $bursts + 200 * length + 64 * ([$threads, (map(.threads) | add // 0)] | max)' >/dev/null
}

# judge SAYS STATUS BURSTS THREADS
judge() {
  local status calls
  status=$(cat status) calls=$(known_calls)
  # heaptape reports errors at startup before the program runs.
  if [ "$status" -eq 125 ] && [ ! -s out ]; then
    grep -q '2>&-' what || grep -q '^heaptape: ' err
    return
  fi
  [ "$(cat out)" = "$1"$'\n'"status $2" ] || return
  if [ "$status" -eq 125 ]; then
    grep -q '2>&-' what || grep -q '^heaptape: ' err
    return
  fi
  { [ "$status" -eq 0 ] && "$HEAPTAPE" check -q t.ht; } || return
  if is_too_much "$3" "$4"; then
    echo "more losses are reported than calls were made"
    return 1
  fi
  [ "$calls" -eq $((3 * $3)) ] || { [ "$calls" -lt $((3 * $3)) ] && is_said $((3 * $3 - calls)); }
}

@test "output, status and losses are right in random environments" {
  skip_under_sanitizer
  need_unshare -m
  local first=${HEAPTAPE_TEST_SEED:-1} bad=0 unrecorded=0 partly=0
  for ((seed = first; seed < first + ENVIRONMENTS; seed++)); do
    rm -rf ./*
    HEAPTAPE_LIBEXEC=$LIBEXEC unshare -m --propagation private "$HEAPTAPE_SOURCE/tests/hostile/surroundings.bash" $seed 2>script
    read -r says exits bursts threads <want
    if ! judge "$says" "$exits" "$bursts" "$threads"; then
      bad=$((bad + 1))
      echo "seed $seed: status $(cat status), output $(tr '\n' ' ' <out), wanted $says, status $exits, $((3 * bursts)) calls, has $(known_calls)"
      cat what err script
    fi
    [ "$(cat status)" -ne 125 ] || unrecorded=$((unrecorded + 1))
    [ "$(known_calls)" -eq $((3 * bursts)) ] || partly=$((partly + 1))
  done
  echo "# $ENVIRONMENTS surroundings: $bad bad, $unrecorded with exit status 125, $partly not recorded as a whole" >&3
  [ $bad -eq 0 ]
}

@test "call stacks without /proc, for a program that uses the frame pointer for data" {
  skip_under_sanitizer
  need_unshare -m
  bats_require_minimum_version 1.5.0
  # shellcheck disable=SC2016 # the inner shell's
  HEAPTAPE_LIBEXEC=$LIBEXEC run --separate-stderr timeout -k 1 120 unshare -m bash -c 'umount -l /proc; exec "$0" record -o t.ht --stacks=8 -- odd_frame' "$HEAPTAPE"
  expect "output" [ "$output" = "done" ]
  [ "$status" -eq 0 ]
}

@test "a stack limit of 64 KiB: commands work" {
  skip_under_sanitizer
  unset NO_COLOR
  local command
  "$HEAPTAPE" record -q --stacks -o t.ht -- known threads 100 2
  "$HEAPTAPE" convert -q -o t.htw t.ht
  while read -r command; do
    echo "$command"
    # shellcheck disable=SC2016,SC2086 # the inner shell's; words
    timeout -k 1 120 bash -c 'ulimit -s 64; exec "$0" "$@"' "$HEAPTAPE" $command </dev/null >out
  done <<'END'
record --stacks -f -o o.ht -- known threads 100 2
record --aggregate -f -o o.ht -- known threads 100 2
record --flight 1M -f -o o.ht -- known threads 100 2
stat t.ht
stat --by site t.ht
stat --rss t.ht
doctor t.ht
doctor -- known threads 100 2
check t.ht
dump t.ht
diff t.ht t.ht
symbolize t.ht -f -o o.symbols
report t.ht -f -o o.html
convert t.ht -f -o o.htw
export t.ht -F json -f -o o.json
sql t.ht SELECT(1)
replay t.htw
compare -a glibc,MALLOC_ARENA_MAX=1 -a glibc t.htw
slice t.htw --to 100 -f -o o.slice
merge t.htw t.htw -f -o o.merged
anonymize t.htw -f -o o.anonymous
allocators
END
}
