# Anonymized workloads contain no names and have the same events.
load replay_helper

# recorded NAME: records a program with secrets wherever a recording can contain some, as NAME.htw.
recorded() {
  cat >secret.c <<'END'
#include <heaptape/heaptape.h>
#include <pthread.h>
#include <stdlib.h>
static void *run(void *p)
{
    pthread_setname_np(pthread_self(), "secretthread");
    for (int i = 1; i < 2000; i++)
        free(malloc((size_t)i));
    return p;
}
int main(void)
{
    pthread_t t;
    void *kept = calloc(3, 33);
    pthread_create(&t, NULL, run, NULL);
    heaptape_mark("secretmark");
    for (int i = 1; i < 2000; i++)
        kept = realloc(kept, (size_t)i);
    pthread_join(t, NULL);
    return !kept;
}
END
  mkdir -p secretfolder
  cc -D_GNU_SOURCE -g -I"$HEAPTAPE_SOURCE/include" -pthread -o secretfolder/secretprogram secret.c
  "$HEAPTAPE" record -q -f --stacks -o "$1.ht" -- secretfolder/secretprogram secretargument
  "$HEAPTAPE" symbolize "$1.ht" 2>/dev/null
  "$HEAPTAPE" convert -q -f -o "$1.htw" "$1.ht"
}

# all_text FILE: the output of all commands that read it.
all_text() {
  "$HEAPTAPE" dump "$1"
  "$HEAPTAPE" dump --format json "$1"
  "$HEAPTAPE" stat --json "$1"
  "$HEAPTAPE" stat --by site "$1" 2>/dev/null || true
  strings "$1"
}

@test "no option leaves a name in the file" {
  skip_under_sanitizer
  recorded a
  all_text a.htw >before
  for word in secretthread secretmark secretfolder secretprogram secretargument /lib; do
    grep -q "$word" before
  done
  pid=$("$HEAPTAPE" stat --json a.htw | jq '.processes[0].pid')
  for options in "" --keep-stacks "--times 1ms" --round-sizes "--times 1ms --round-sizes --keep-stacks"; do
    # shellcheck disable=SC2086 # words
    heaptape anonymize -f $options -o b.htw a.htw
    [ "$status" -eq 0 ]
    "$HEAPTAPE" check -q b.htw
    all_text b.htw >after
    expect "no secret" [ "$(grep -c secret after)" -eq 0 ]
    [ "$("$HEAPTAPE" stat --json b.htw | jq '.processes[0].pid')" -eq 1 ]
    expect "another pid than $pid" [ "$pid" -ne 1 ]
    # Compressed bytes contain a given word of 4 letters by chance once in 10^6 files, of 5 letters
    # once in 10^8.
    expect "no path" [ "$(grep -c '/lib/\|/lib64/\|/tmp/\|/home/' after)" -eq 0 ]
  done
}

@test "the events stay the same" {
  skip_under_sanitizer
  recorded a
  heaptape anonymize -o b.htw a.htw
  has "$stderr" "removed the command line, paths, process numbers, 1 thread names and the texts of 1 marks, and the call sites"
  has "$stderr" "keeps sizes, alignments, times, threads, samples of memory, and the name and build ID of the allocator"
  for f in a b; do
    "$HEAPTAPE" dump --format json $f.htw |
      jq -c 'select(.kind | startswith("heaptape.") | not) | [.kind, .tid, .time_ns, .size, .count, .result, .ptr, .old_ptr]' >$f.json
  done
  diff <(sed 's/"site":[0-9]*//' a.json) b.json
  for f in a b; do
    "$HEAPTAPE" stat --json $f.htw | jq '.total // . | {events, requested_bytes, peak_live_bytes, live_at_end_bytes, dependencies, order, lifetimes, peak: (.peak | del(.pid) | .recording_rss_bytes |= (. // 0)), cpu_ns}' >$f.facts
  done
  diff a.facts b.facts
  ! grep null b.facts || false
  "$HEAPTAPE" anonymize -q a.ht | "$HEAPTAPE" check -q -
  "$HEAPTAPE" anonymize -q - <a.htw | cmp - b.htw
}

@test "sizes and times are rounded, and call sites become numbers" {
  skip_under_sanitizer
  recorded a
  heaptape anonymize --round-sizes --times 1ms -o b.htw a.htw
  has "$stderr" "keeps size classes, alignments, times to 1ms"
  "$HEAPTAPE" dump --format json b.htw | jq -r 'select(.kind == "malloc") | .size' | sort -nu >sizes
  expect "size classes" [ "$(sed -n '1,12p' sizes | tr '\n' ' ')" = "8 16 32 48 64 80 96 112 128 160 192 224 " ]
  expect "up to 2048" [ "$(tail -n 1 sizes)" -eq 2048 ]
  "$HEAPTAPE" dump --format json b.htw | jq -c 'select(.kind == "calloc") | [.count, .size]' | grep -x '\[1,112\]'
  [ "$("$HEAPTAPE" dump --format json b.htw | jq -r .time_ns | awk '{ print int($1 / 1000) }' | sort -u | wc -l)" -lt 100 ]
  "$HEAPTAPE" anonymize -q -f --keep-stacks -o b.htw a.htw
  # The number of sites and their totals stay the same.
  for f in a b; do
    "$HEAPTAPE" stat --by site --json $f.htw | jq -c '[.sites[] | [.allocated_bytes, .allocs, ([.frames[].address] | unique | length)]] | sort' >$f.sites
  done
  [ "$(jq length b.sites)" -ge 3 ]
  diff a.sites b.sites
  has "$("$HEAPTAPE" stat --by site b.htw)" "function 1 (program)"
}

@test "threads with equal times can be anonymized again" {
  for i in 0 1 2 3 4 5; do
    printf '{"kind":"malloc","pid":1,"tid":%d,"time_ns":%d,"size":10,"result":%d}\n' $((i % 2)) $((i + 1)) $((i + 1))
  done >in.json
  "$HEAPTAPE" import -q --format json -o in.htw in.json
  "$HEAPTAPE" anonymize -q --times 1s -o once.htw in.htw
  heaptape anonymize -q -o twice.htw once.htw
  expect "status 0" [ "$status" -eq 0 ]
  "$HEAPTAPE" check -q twice.htw
  [ "$("$HEAPTAPE" stat --json twice.htw | jq -c '[.events, .slots, .threads]')" = "[6,6,2]" ]
}

@test "errors are one line" {
  heaptape anonymize --times soon -o b.htw a.htw
  usage_fails "--times: 'soon' is not a time such as 1ms"
  echo nothing >a.htw
  heaptape anonymize -o b.htw a.htw
  fails_with 1 "a.htw"
  [ ! -e b.htw ]
}

@test "replay predicts the whole process from a copy as well" {
  skip_under_sanitizer
  "$HEAPTAPE" record -q -o a.ht -- perl -e 'my @a = map { "x" x ($_ % 300) } 1 .. 40000; print scalar @a' >/dev/null
  "$HEAPTAPE" convert -q -o a.htw a.ht
  "$HEAPTAPE" anonymize -q -o b.htw a.htw
  for file in a b; do
    heaptape replay -q -r 1 -a glibc --json "$file.htw"
    expect "$file: predicted" [ "$(jq ".process_peak_rss_bytes > 1e6" <<<"$output")" = true ]
  done
}
