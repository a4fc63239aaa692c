# Tests the first finding about services whose resident memory has one known cause. The services are
# recorded with --pid, and from their start.
load trace

causes='leak cache saw pinned arenas mapping stacks reserve'

# attached CAUSE: records a running service, as CAUSE.ht.
attached() {
  local service
  "$HEAPTAPE_PROGRAMS/verdicts" "$1" >"$1.out" 3>&- &
  service=$!
  wait_until grep -qsx ready "$1.out"
  timeout 120 "$HEAPTAPE" record -q -f -o "$1.ht" --pid "$service" --duration 4 --walk --stacks 3>&-
  kill "$service"
}

# started CAUSE [SECONDS]: records a service from its start, as started_CAUSE.ht.
started() {
  "$HEAPTAPE" record -q -f --stacks -o "started_$1.ht" -- "$HEAPTAPE_PROGRAMS/verdicts" "$1" "${2:-5}" >/dev/null 3>&-
}

# The recordings take 5 s each, so they run at the same time.
setup_file() {
  local name
  cd "$BATS_FILE_TMPDIR" || return
  skip_without_ptrace
  # glibc would write to all blocks.
  unset MALLOC_PERTURB_
  for name in $causes; do
    attached "$name" &
    started "$name" &
  done
  started exits 9 & # the table is a step, so that only the second half is linear
  "$HEAPTAPE" record -q -f -o two.ht -- sh -c "\"$HEAPTAPE_PROGRAMS/verdicts\" mapping 5 & exec \"$HEAPTAPE_PROGRAMS/verdicts\" reserve 5" >/dev/null 3>&- &
  wait
}

setup() {
  cd "$BATS_FILE_TMPDIR" || return
}

teardown() {
  show_failure
}

# first NAME KIND ACT TEXT...: the first finding about NAME.ht is a verdict of this kind. ACT is
# true if it is marked. Its text and its remedy contain each TEXT.
first() {
  local name=$1 kind=$2 act=$3
  shift 3
  "$HEAPTAPE" stat -q --json "$name.ht" >"$name.json"
  jq -r '.verdict | tojson' "$name.json"
  [ "$(jq -r '.findings[0].name, .verdict.kind, .findings[0].act' "$name.json" | xargs)" = "verdict $kind $act" ]
  for text; do
    jq -r '.verdict | .text + " " + (.remedy // "")' "$name.json" | grep -q -- "$text"
  done
}

@test "a leak is named with its call path" {
  first leak grows true 'remember_session (verdicts.c:' 'frees none of its blocks' 'Free the blocks'
  first started_leak grows true 'remember_session (verdicts.c:' 'until the process exits'
  # Blocks from before the recording have no call path. The title contains all arguments.
  "$HEAPTAPE" stat -q leak.ht | tee screen
  grep -q '(allocated before the recording)' screen
  "$HEAPTAPE" stat -q started_leak.ht | tee screen
  [ "$(grep -c 'before the recording' screen)" -eq 0 ]
  "$HEAPTAPE" doctor -q leak.ht | tr '\n' ' ' | grep -q '^leak.ht, process [0-9]* ([^)]*verdicts leak): RSS'
}

@test "a list that is freed at exit is named, not the larger table beside it" {
  first started_exits grows true 'Call paths that grow: [0-9.]* MiB in remember_session (verdicts.c:' 'At exit, the process frees them'
  [ "$(jq -r .verdict.text started_exits.json | grep -c 'load_table\|The first of them')" -eq 0 ]
}

@test "a cache that fills is not accused" {
  first cache fills false 'MiB in cache (verdicts.c:'
  # Among the functions that allocate, only the owner is named.
  [ "$(jq -r '.verdict.text' cache.json | grep -c 'get (')" -eq 0 ]
  first started_cache fills false 'towards [0-9.]* MiB to [0-9.]* MiB: a cache'
}

@test "a saw-tooth is healthy" {
  first saw sawtooth false 'no leak'
  first started_saw sawtooth false 'no leak'
}

@test "free memory between live blocks: pinned" {
  first pinned pinned true 'live blocks (.*) lie between' 'malloc_trim(0)' 'all of them from before the recording'
  first started_pinned pinned true 'by call path: .* in batch (verdicts.c:' 'malloc_trim(0)'
}

@test "free memory in arenas" {
  first arenas arenas true 'retained in [0-9]* arenas' 'MALLOC_ARENA_MAX=2'
  first started_arenas arenas true 'MALLOC_ARENA_MAX=2'
}

@test "memory outside malloc that grows" {
  first mapping mappings_grow true 'Anonymous memory outside malloc grows linearly' 'mmap'
  first started_mapping mappings_grow true 'Anonymous memory outside malloc grows linearly'
}

@test "thread stacks" {
  first stacks stacks true 'There are 20[0-9] stacks' 'fewer threads'
  first started_stacks stacks true 'There are 20[0-9] stacks'
}

@test "blocks that were never written" {
  first reserve unwritten true 'although live blocks have 320\.[0-9] MiB: .* of them are not resident'
  first started_reserve unwritten true 'Largest call paths: 320.0 MiB in reserve (verdicts.c:'
}

@test "two processes: the verdict is about the process with the most live bytes, not the most RSS" {
  first two unwritten true 'although live blocks have 320\.[0-9] MiB: .* of them are not resident'
}

@test "the text of stat and the page begin with the verdict" {
  "$HEAPTAPE" stat -q -v leak.ht >text
  sed -n '/^findings/{n;p;}' text | grep '^\* Live bytes grow linearly, by'
  # Without options, stat prints one screen.
  for name in $causes; do
    LC_ALL=C.UTF-8 "$HEAPTAPE" stat -q "$name.ht" >text
    expect "$name: at most 40 lines" [ "$(wc -l <text)" -le 40 ]
    expect "$name: at most 80 columns" [ "$(LC_ALL=C.UTF-8 wc -L <text)" -le 80 ]
    [ "$("$HEAPTAPE" stat -q --json "$name.ht" | jq -r '.verdict.text | .[:20]')" = "$(grep -m 1 '^[*-] ' text | cut -c 3-22)" ]
    grep -q "^All tables: heaptape stat --verbose $name.ht$" text
  done
  "$HEAPTAPE" stat -q leak.ht >text
  grep -Eq '^peak RSS  *[0-9.]* MiB(  with .* of heaptape.s own)?$' text
  grep -q '^ *[0-9.]* MiB *[0-9.]* MiB  remember_session (verdicts.c:[0-9]*)' text
  "$HEAPTAPE" report -q -f -o leak.html leak.ht
  python3 -c "import json, re
d = json.loads(re.search(r'id=\"data\">(.*?)</script>', open('leak.html').read(), re.S).group(1))
w = d['workloads'][0]['stat']['verdict']
assert d['findings'][0]['name'] == 'verdict' and w['kind'] == 'grows'
assert d['findings'][0]['text'].startswith(w['text']) and d['findings'][0]['advice'] == w['remedy']"
}
