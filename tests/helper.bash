# What the bats tests share: `load ../helper`.

# The interpreter itself, where the first python3 is a script that looks for it.
case :$PATH: in
  *":${HEAPTAPE_PYTHON:-}:"*) ;;
  *) PATH=${HEAPTAPE_PYTHON:+$HEAPTAPE_PYTHON:}$PATH ;;
esac

# LD_PRELOAD and PATH, which tests set, cannot hold a path with a space or a colon: links to such folders take their place.
case $HEAPTAPE_SOURCE$HEAPTAPE_BUILD in
  *[\ :]*)
    links=$BATS_RUN_TMPDIR/folders
    mkdir -p "$links"
    [ -L "$links/source" ] || ln -s "$HEAPTAPE_SOURCE" "$links/source"
    [ -L "$links/build" ] || ln -s "$HEAPTAPE_BUILD" "$links/build"
    HEAPTAPE=${HEAPTAPE/#"$HEAPTAPE_BUILD"/"$links/build"}
    HEAPTAPE_PROGRAMS=${HEAPTAPE_PROGRAMS/#"$HEAPTAPE_BUILD"/"$links/build"}
    HEAPTAPE_SOURCE=$links/source HEAPTAPE_BUILD=$links/build
    ;;
esac

# Each test runs in a folder of its own, which is removed afterwards.
setup() {
  cd "$BATS_TEST_TMPDIR" || return
  unset NO_COLOR HEAPTAPE_LIBEXEC HEAPTAPE_SPOOL
  export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
}

teardown() {
  show_failure
}

# show_failure: what a test that has failed saw last, since its log is all that one has of another machine: the last `run`,
# and the starts of the texts that it wrote last.
show_failure() {
  local name
  [ -z "${BATS_TEST_COMPLETED:-}" ] || return 0
  printf 'status: %s\nstdout: %s\nstderr: %s\n' "${status:-}" "${output:-}" "${stderr:-}" | head -c 4000 | cat -v
  echo
  find . -maxdepth 1 -type f -size -1000k -printf '%T@ %f\n' | sort -rn | head -n 6 | cut -d' ' -f2- | while read -r name; do
    ! grep -Iq . "./$name" || { printf '%q:\n' "$name" && head -c 2000 "./$name" | cat -v && echo; }
  done
}

# Every JSON document that the tests of a file have printed is as docs/reference/json says.
teardown_file() {
  check_json
}

check_json() {
  local status=0
  [ -d "$BATS_FILE_TMPDIR/json" ] && [ -z "$HEAPTAPE_SANITIZED" ] || return 0
  "$HEAPTAPE_SOURCE/tools/check-json" --kept "$BATS_FILE_TMPDIR/json" || status=$?
  [ "$status" -eq 0 ] || [ "$status" -eq 77 ]
}

# A preloaded library and a sanitizer's runtime both want to be first.
skip_under_sanitizer() {
  [ -z "$HEAPTAPE_SANITIZED" ] || skip "the capture library cannot be preloaded under -fsanitize=$HEAPTAPE_SANITIZED"
}

# for_other_users FILE...: copies heaptape and these files of the build to where every user can reach them, if the folder of the
# build is closed to other users, and makes $HEAPTAPE, $HEAPTAPE_BUILD, $HEAPTAPE_PROGRAMS and PATH name the copies.
for_other_users() {
  local copy=$BATS_TEST_TMPDIR/build nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
  [ "$(id -u)" -eq 0 ] || skip "only root may change the user"
  ! "${nobody[@]}" test -x "$HEAPTAPE_BUILD/heaptape" || return 0
  mkdir -p "$copy"
  (cd "$HEAPTAPE_BUILD" && cp -a --parents heaptape src/capture/*.so src/replay/player/heaptape-replay "$@" "$copy")
  chmod -R a+rX "$copy"
  chmod a+x "$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/.." "$BATS_TEST_TMPDIR/../.."
  PATH=${PATH//"$HEAPTAPE_BUILD"/"$copy"}
  HEAPTAPE=$copy/heaptape HEAPTAPE_BUILD=$copy HEAPTAPE_PROGRAMS=$copy/tests
  "${nobody[@]}" test -x "$HEAPTAPE" || skip "other users cannot reach the folder of temporary files"
}

# maps_heaptape PID: a library of heaptape's is mapped there, whatever the folders are called.
maps_heaptape() {
  grep -q '[/:]libheaptape[^/]*$' "/proc/$1/maps"
}

# wait_until COMMAND...: until it succeeds. Fails after a minute: machines differ in speed and are busy with other work.
wait_until() {
  local end=$((SECONDS + 60))
  until "$@"; do
    [ $SECONDS -lt $end ] || { echo "not within a minute: $*"; return 1; }
    sleep 0.02
  done
}

# has_events PID N: of that process the recorder has read so many.
has_events() {
  local n
  n=$("$HEAPTAPE" ctl "$1" status --json 2>/dev/null | jq .events)
  [ "${n:-0}" -ge "$2" ]
}

# Runs heaptape with standard output and error apart: $status, $output, $stderr, ${lines[@]}, ${stderr_lines[@]}.
heaptape() {
  bats_require_minimum_version 1.5.0
  run --separate-stderr "$HEAPTAPE" "$@"
}

# fails_with STATUS TEXT...: the status of the last run, and that standard error is one line "heaptape: …" with each
# TEXT in it.
fails_with() {
  local want=$1 text
  shift
  expect "status $want" [ "$status" -eq "$want" ]
  expect "one line on stderr" [ "${#stderr_lines[@]}" -eq 1 ]
  expect "heaptape: at the start" [ "${stderr#heaptape: }" != "$stderr" ]
  for text in "$@"; do
    has "$stderr" "$text"
  done
}

# usage_fails TEXT...: exit 2, one line saying why and the usage line.
usage_fails() {
  local text
  expect "status 2" [ "$status" -eq 2 ]
  expect "nothing on stdout" [ -z "$output" ]
  expect "two lines on stderr" [ "${#stderr_lines[@]}" -eq 2 ]
  expect "usage on the second" [ "${stderr_lines[1]#usage: heaptape}" != "${stderr_lines[1]}" ]
  for text in "$@"; do
    has "${stderr_lines[0]}" "$text"
  done
}

# expect WHAT COMMAND...: shows the last run when the command fails.
expect() {
  local what=$1
  shift
  "$@" && return
  printf 'expected: %s\nstatus: %s\nstdout: %s\nstderr: %s\n' "$what" "$status" "$output" "$stderr"
  return 1
}

# on_terminal COLUMNS COMMAND...: what it prints on a terminal of so many columns, standard error too.
on_terminal() {
  python3 - "$@" <<'END'
import fcntl, os, pty, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(sys.argv[1]), 0, 0))
    os.execvp(sys.argv[2], sys.argv[2:])
text = b""
try:
    while chunk := os.read(fd, 65536):
        text += chunk
except OSError:
    pass
os.waitpid(pid, 0)
sys.stdout.buffer.write(text.replace(b"\r\n", b"\n"))
END
}

# has TEXT PART
has() {
  case $1 in
    *"$2"*) return 0 ;;
  esac
  printf "expected '%s' in: %s\n" "$2" "$1"
  return 1
}
