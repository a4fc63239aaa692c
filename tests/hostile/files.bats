load hostile

# Permissions of outputs, and replacement of files.

recorded() {
  "$HEAPTAPE" record -q "$@" -- "$HEAPTAPE_PROGRAMS/hostile/churn" 100 >/dev/null
}

@test "only the owner may read traces, workloads and other outputs" {
  skip_under_sanitizer
  umask 022
  recorded -o t.ht
  recorded -o live.txt --format logalloc
  "$HEAPTAPE" convert -q -o w.htw t.ht
  "$HEAPTAPE" slice -q -o s.htw w.htw
  "$HEAPTAPE" merge -q -o m.htw w.htw s.htw
  "$HEAPTAPE" export -q -F mtrace -o t.mtrace t.ht
  "$HEAPTAPE" export -q -F ctf -o t.ctf t.ht
  "$HEAPTAPE" import -q -F mtrace -o i.htw t.mtrace
  run find . -type f -perm /077
  expect "no permission for others" [ -z "$output" ]
}

@test "-f does not write through a symbolic link" {
  skip_under_sanitizer
  echo precious >file
  ln -s file t.ht
  run recorded -f -o t.ht
  [ "$status" -eq 125 ]
  has "$output" "t.ht: is a symbolic link"
  [ "$(cat file)" = precious ]
  # A symbolic link to a missing file must not create that file, with or without -f.
  ln -s new dangling
  for force in "" -f; do
    run recorded $force -o dangling
    [ "$status" -eq 125 ]
    [ ! -e new ]
  done
}

@test "-f replaces a file only after the new recording exists" {
  bats_require_minimum_version 1.5.0
  skip_under_sanitizer
  recorded -o t.ht
  chmod 644 t.ht
  cp t.ht old.ht
  run -127 "$HEAPTAPE" record -f -o t.ht -- ./none
  cmp t.ht old.ht
  run -127 "$HEAPTAPE" record -f -F logalloc -o t.ht -- ./none
  cmp t.ht old.ht
  ln t.ht link.ht
  recorded -f -o t.ht
  [ "$(stat -c %a t.ht)" = 600 ]
  # Another hard link keeps the old file.
  cmp link.ht old.ht
  [ "$(ls | grep -c tmp-)" -eq 0 ]
}

@test "a session is never in a folder that other users own or can write to" {
  skip_under_sanitizer
  mkdir spool
  alone() {
    env HEAPTAPE_SPOOL="$PWD/spool" LD_PRELOAD="$HEAPTAPE_BUILD/src/capture/libheaptape.so" \
      "$HEAPTAPE_PROGRAMS/hostile/churn" 100
  }
  chmod 770 spool
  [ "$(alone)" = "done 100" ]
  [ -z "$(ls spool)" ]
  run "$HEAPTAPE" record --collect spool -o t.ht
  has "$output" "spool: other users can write to it: use mode 700"
  if [ "$(id -u)" -eq 0 ]; then
    chmod 700 spool
    chown 12345 spool
    [ "$(alone)" = "done 100" ]
    [ -z "$(ls spool)" ]
    run "$HEAPTAPE" record --collect spool -o t.ht
    has "$output" "spool: belongs to another user: run heaptape as user 12345"
    chown 0 spool
  fi
  chmod 700 spool
  [ "$(alone)" = "done 100" ]
  "$HEAPTAPE" record -q --collect spool -o t.ht
  [ "$(events)" -ge 200 ]
}
