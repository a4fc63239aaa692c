# Names of functions if the recorded files are missing: the names are found elsewhere, or were
# written into the recording.

load ../helper

setup_file() {
  cd "$BATS_FILE_TMPDIR" || return
  [ -z "$HEAPTAPE_SANITIZED" ] || return 0
  mkdir bin
  cat >prog.c <<'END'
#include <stdlib.h>
static inline __attribute__((always_inline)) void *inlined(size_t size) { return malloc(size); }
__attribute__((noinline)) void *keep(size_t size) { return inlined(size); }
int main(void)
{
    void *volatile kept;
    for (int i = 0; i < 7; i++)
        kept = keep(1000);
    return kept == NULL;
}
END
  gcc -g -O1 -Wl,--build-id -o bin/prog prog.c
  HEAPTAPE_SPOOL='' "$HEAPTAPE" record -q --stacks -o kept.ht -- bin/prog
  "$HEAPTAPE" convert -q -o kept.htw kept.ht
  # With the binary, which is then moved away.
  "$HEAPTAPE" stat --by site --format json kept.ht >with.json
  mkdir away
  mv bin/prog away/
  id=$(readelf -n away/prog | sed -n 's/.*Build ID: //p')
  echo "$id" >id
  for dir in whole debug stripped; do mkdir -p "$dir/.build-id/${id:0:2}"; done
  cp away/prog "whole/.build-id/${id:0:2}/${id:2}"
  objcopy --only-keep-debug away/prog "debug/.build-id/${id:0:2}/${id:2}.debug"
  mkdir by_name by_path
  cp away/prog by_name/prog
  strip -o "stripped/.build-id/${id:0:2}/${id:2}" away/prog
  cp debug/.build-id/*/* "stripped/.build-id/${id:0:2}/"
  mkdir -p "by_path/$BATS_FILE_TMPDIR/bin"
  cp away/prog "by_path/$BATS_FILE_TMPDIR/bin/prog"
  # Another program with the same name.
  mkdir other
  gcc -g -O1 -DOTHER -Wl,--build-id -o other/prog -x c - <<<'int main(void) { return 1; }'
}

setup() {
  skip_under_sanitizer
  cd "$BATS_TEST_TMPDIR" || return
  unset DEBUGINFOD_URLS
  files=$BATS_FILE_TMPDIR
  cp "$files"/kept.ht t.ht
  cp "$files"/kept.htw t.htw
}

# program_frames FILE OPTION...: the frames of the program's own functions, in the only stack with
# them.
program_frames() {
  "$HEAPTAPE" stat -q --by site --format json "$@" |
    jq -c '[.sites[] | select(.live_at_end_bytes == 7000) | .frames[] | select(.module | endswith("/prog")) |
      [.function, (.file | split("/") | last), .line]]'
}

named='[["inlined","prog.c",2],["keep","prog.c",3],["main","prog.c",8],["_start",null,0]]'

@test "symbolize: functions, inlined functions and lines of the program in its original place" {
  [ "$(jq -c '[.sites[] | select(.live_at_end_bytes == 7000) | .frames[] | select(.module | endswith("/prog")) |
      [.function, (.file | split("/") | last), .line]]' "$files/with.json")" = "$named" ]
  # Without the program there are no names.
  [[ "$(program_frames t.ht)" != *keep* ]]
}

@test "symbolize: --debug-dir by build id, by the debug file alone, stripped, by path and by name" {
  for dir in whole debug stripped by_path by_name; do
    expect "$dir" [ "$(program_frames t.ht --debug-dir "$files/$dir")" = "$named" ]
    expect "$dir, of a workload" [ "$(program_frames t.htw --debug-dir "/nowhere:$files/$dir")" = "$named" ]
  done
}

@test "symbolize: a file of another build id is not used" {
  [[ "$(program_frames t.ht --debug-dir "$files/other")" != *main* ]]
  heaptape symbolize --debug-dir "$files/other" t.ht
  expect "done" [ "$status" -eq 0 ]
  has "$stderr" "/bin/prog (and possibly other files) is missing or differs from the recorded file (try --debug-dir)"
  [[ "$(program_frames t.ht)" != *main* ]]
}

@test "symbolize: makes files unnecessary, in a trace and in a workload, and changes nothing else" {
  for file in t.ht t.htw; do
    "$HEAPTAPE" dump -F json "$file" >before
    "$HEAPTAPE" stat --json "$file" | jq 'del(.file_bytes, .bytes_per_event, .call_sites, .findings)' >before.json
    heaptape symbolize --debug-dir "$files/whole" "$file"
    expect "done" [ "$status" -eq 0 ]
    has "$stderr" "heaptape: $file: named "
    [[ "$stderr" != *missing* ]]
    [ "$(program_frames "$file")" = "$named" ]
    "$HEAPTAPE" stat --by site --format json "$file" | jq '[.sites[].frames[].function]' >functions
    jq '[.sites[].frames[].function]' "$files/with.json" | cmp - functions
    "$HEAPTAPE" dump -F json "$file" | cmp - before
    "$HEAPTAPE" stat --json "$file" | jq 'del(.file_bytes, .bytes_per_event, .call_sites, .findings)' | cmp - before.json
    heaptape check "$file"
    expect "sound" [ "$status" -eq 0 ]
    # A second run without any files keeps the names.
    cp "$file" once
    heaptape symbolize "$file"
    expect "again" [ "$status" -eq 0 ]
    cmp once "$file"
  done
}

@test "symbolize: convert, slice, merge and salvage keep names" {
  "$HEAPTAPE" symbolize -q --debug-dir "$files/whole" t.ht
  "$HEAPTAPE" convert -q -f -o c.htw t.ht
  [ "$(program_frames c.htw)" = "$named" ]
  "$HEAPTAPE" slice -q --from 0 -o s.htw c.htw
  [ "$(program_frames s.htw)" = "$named" ]
  "$HEAPTAPE" check --salvage salvaged.ht t.ht || true
  [ ! -e salvaged.ht ] || [ "$(program_frames salvaged.ht)" = "$named" ]
  cp c.htw d.htw
  "$HEAPTAPE" merge -q -o m.htw c.htw d.htw
  "$HEAPTAPE" stat -q --by site --format json m.htw | jq -e '[.sites[] | select(.live_at_end_bytes == 7000) | .frames[1].function] == ["keep", "keep"]'
}

@test "symbolize: -o makes a copy and keeps existing files" {
  cp t.ht before
  "$HEAPTAPE" symbolize -q --debug-dir "$files/whole" -o named.ht t.ht
  cmp before t.ht
  [ "$(program_frames named.ht)" = "$named" ]
  heaptape symbolize -o named.ht t.ht
  fails_with 1 "named.ht: exists; use -f to replace it"
}

@test "symbolize: files without call sites, truncated files and other files stay unchanged" {
  "$HEAPTAPE_PROGRAMS/make_trace" none.ht <<<$'process 100 prog\n0 1000 malloc size=1000 result=0x1000\nend'
  heaptape symbolize none.ht
  fails_with 1 "none.ht: no call sites were recorded (use 'heaptape record --stacks')"
  head -c $(($(stat -c %s t.htw) - 30)) t.htw >cut.htw
  cp cut.htw before
  heaptape symbolize cut.htw
  expect "refused" [ "$status" -eq 1 ]
  cmp before cut.htw
  echo hello >text
  heaptape symbolize text
  expect "refused" [ "$status" -eq 1 ]
  heaptape symbolize -
  usage_fails "'-' is not supported: name files"
  # A truncated trace gets the names for its addresses.
  head -c $(($(stat -c %s t.ht) - 30)) t.ht >cut.ht
  heaptape symbolize --debug-dir "$files/whole" cut.ht
  expect "done" [ "$status" -eq 0 ]
  [ "$(program_frames cut.ht)" = "$named" ]
}

@test "symbolize: from a debuginfod server" {
  ldconfig -p | grep -q libdebuginfod || skip "no libdebuginfod"
  id=$(cat "$files/id")
  mkdir -p "www/buildid/$id" cache
  cp "$files/away/prog" "www/buildid/$id/executable"
  cp "$files/away/prog" "www/buildid/$id/debuginfo"
  (cd www && exec python3 -c '
import http.server, socketserver
class quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *a): pass
with socketserver.TCPServer(("127.0.0.1", 0), quiet) as s:
    open("../port.new", "w").write(str(s.server_address[1]))
    import os; os.rename("../port.new", "../port")
    s.serve_forever()' 3>&-) &
  server=$!
  wait_until [ -e port ]
  got=$(DEBUGINFOD_URLS="http://127.0.0.1:$(cat port)" DEBUGINFOD_CACHE_PATH="$PWD/cache" program_frames t.ht)
  kill "$server"
  expect "names" [ "$got" = "$named" ]
}
