# Outputs that are removed, moved, replaced or truncated while they are written.
# shellcheck disable=SC2030,SC2031 # each test is a subshell
bats_require_minimum_version 1.5.0
load trace

setup() {
  cd "$BATS_TEST_TMPDIR" || return 1
  skip_under_sanitizer
  mkdir d
}

teardown() {
  [ -z "${recorder:-}" ] || kill "$recorder" 2>/dev/null || true
  show_failure
}

# begin OPTIONS...: records until the file `go` exists; returns once the output has data.
# shellcheck disable=SC2016
begin() {
  "$HEAPTAPE" record "$@" -- sh -c 'ls / >/dev/null; until [ -e go ]; do sleep 0.05; ls / >/dev/null; done' 2>record.log 3>&- &
  recorder=$!
  wait_until sh -c '[ -n "$(find d -type f -size +100c)" ]'
}

# has_failed TEXT...: the recording ended with 125, and the last lines have each TEXT.
has_failed() {
  local text
  status=0
  touch go
  wait "$recorder" || status=$?
  recorder=
  stderr=$(cat record.log)
  expect "status 125" [ "$status" -eq 125 ]
  for text in "$@"; do
    has "$stderr" "$text"
  done
}

@test "outputs: a trace that is removed is written again" {
  begin -o d/x.ht
  rm d/x.ht
  has_failed "heaptape: d/x.ht: was removed while it was written; the data is kept as d/x.ht"
  "$HEAPTAPE" check -q d/x.ht
  [ "$(stat -c %a d/x.ht)" = 600 ]
}

@test "outputs: a trace whose folder is removed" {
  begin -o d/x.ht
  rm -r d
  has_failed "d/x.ht: was removed while it was written; the data is kept as d/x.ht"
  "$HEAPTAPE" check -q d/x.ht
}

@test "outputs: a trace that is moved has both names" {
  begin -o d/x.ht
  mv d/x.ht d/y.ht
  has_failed "d/x.ht: was moved while it was written; the data is kept as d/x.ht"
  "$HEAPTAPE" check -q d/x.ht
  [ d/x.ht -ef d/y.ht ]
}

@test "outputs: a trace that is replaced is kept beside the new file" {
  begin -o d/x.ht
  echo other >d/other
  mv d/other d/x.ht
  has_failed "d/x.ht: was replaced while it was written; the data is kept as d/x.ht.kept-"
  [ "$(cat d/x.ht)" = other ]
  "$HEAPTAPE" check -q d/x.ht.kept-*
}

@test "outputs: a symbolic link that replaces a trace is not followed" {
  begin -o d/x.ht
  echo other >other
  ln -sf ../other d/x.ht
  has_failed "d/x.ht: was replaced while it was written; the data is kept as d/x.ht.kept-"
  [ "$(cat other)" = other ]
  "$HEAPTAPE" check -q d/x.ht.kept-*
}

@test "outputs: a trace that is truncated, and grows again" {
  begin -o d/x.ht
  local had i
  # The recorder compares the size before each write. It misses a truncation between the comparison
  # and the write, so the test truncates twice.
  for i in 1 2; do
    had=$(stat -c %s d/x.ht)
    truncate -s 100 d/x.ht
    wait_until sh -c "[ \$(stat -c %s d/x.ht) -gt $had ]"
  done
  has_failed "d/x.ht: was truncated to 100 of "
}

@test "outputs: a trace that replaces a file, and is removed" {
  echo old >d/x.ht
  "$HEAPTAPE" record -f -o d/x.ht -- sh -c 'ls / >/dev/null; until [ -e go ]; do sleep 0.05; done' 2>record.log 3>&- &
  recorder=$!
  wait_until sh -c '[ "$(head -c 3 d/x.ht)" != old ]'
  rm d/x.ht
  has_failed "d/x.ht: was removed while it was written; the data is kept as d/x.ht"
  "$HEAPTAPE" check -q d/x.ht
}

@test "outputs: a file system that is unmounted" {
  unshare -m true 2>/dev/null || skip "no mount namespaces"
  cat >unmounted.sh <<'END'
mount -t tmpfs none d || exit 77
"$HEAPTAPE" record -o d/x.ht -- sh -c 'ls / >/dev/null; until [ -e go ]; do sleep 0.05; done' 2>record.log &
recorder=$!
until [ -s d/x.ht ]; do sleep 0.05; done
umount -l d
touch go
wait $recorder
END
  run unshare -m sh unmounted.sh
  [ "$status" -ne 77 ] || skip "tmpfs cannot be mounted"
  [ "$status" -eq 125 ]
  grep -q "d/x.ht: was unmounted while it was written; the data is kept as d/x.ht" record.log
  "$HEAPTAPE" check -q d/x.ht
}

@test "outputs: an unmodified output or a device does not fail" {
  run -0 "$HEAPTAPE" record -o d/x.ht -- ls /
  run -0 "$HEAPTAPE" record -o /dev/null -- ls /
  run -0 "$HEAPTAPE" record -f -o /dev/fd/7 -- ls / 7>d/y.ht
  "$HEAPTAPE" check -q d/x.ht
}

@test "outputs: a removed file in another tool's format" {
  begin -F logalloc -o d/x
  rm d/x
  has_failed "d/x: was removed while it was written; the data is kept as d/x"
  [ "$(wc -l <d/x)" -gt 100 ]
}

@test "outputs: a log that MALLOC_LOG appends to is moved" {
  echo first >d/log
  MALLOC_LOG=d/log begin
  wait_until sh -c '[ "$(wc -l <d/log)" -gt 10 ]'
  mv d/log d/old
  has_failed "d/log: was moved while it was written; the data is kept as d/log"
  [ "$(head -n 1 d/log)" = first ]
}

@test "outputs: a stream of a folder that is removed" {
  begin -F ctf -o d/x
  wait_until compgen -G 'd/x.tmp-*/stream_*'
  rm d/x.tmp-*/stream_*
  has_failed "stream_" "cannot continue: No such file"
}

# Fails if the recorder renames the segment at this moment.
remove_part() {
  rm d/*.part 2>/dev/null
}

@test "outputs: a removed segment is written again, and the later ones as well" {
  begin --segment 500ms -o d/%n.ht
  wait_until [ -e d/1.ht ]
  wait_until remove_part
  wait_until [ -e d/3.ht ]
  has_failed ".ht.part: was removed while it was written; the data is kept as d/" "d/%n.ht: 1 of "
  "$HEAPTAPE" check -q d
}

@test "outputs: a dump that cannot be written" {
  "$HEAPTAPE" record --flight 1M -o d/%n.ht -- sh -c 'ls / >/dev/null; : >ready; until [ -e go ]; do sleep 0.05; done' 2>record.log 3>&- &
  recorder=$!
  wait_until [ -e ready ]
  rmdir d
  has_failed "d/1.ht: cannot create" "d/%n.ht: 1 of 1 dumps were not written"
}

@test "outputs: an aggregate that cannot be written at the end" {
  begin --aggregate=1 -o d/x.hta
  rm -r d
  has_failed "d/x.hta: cannot create" "No such file"
}
