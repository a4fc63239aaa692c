# Shared by the bats tests: `load ../helper`.

# LD_PRELOAD and PATH cannot contain paths with a space or a colon, so tests use links to such
# directories.
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

# The interpreter chosen by tests/meson.build.
case :$PATH: in
  *":$HEAPTAPE_PROGRAMS/python:"*) ;;
  *) PATH=$HEAPTAPE_PROGRAMS/python:$PATH ;;
esac

# bats notes the stack before each command, which takes a quarter of the CPU time of short tests.
# Since bash 5.2, the stack after an error has the right lines. Only failures of teardown and unset
# variables have no line.
if [ "${BASH_VERSINFO[0]}${BASH_VERSINFO[1]}" -ge 52 ]; then
  bats_debug_trap() {
    trap - DEBUG
  }

  bats_error_trap() {
    bats_check_status_from_trap
    bats_capture_stack_trace
    BATS_DEBUG_LAST_STACK_TRACE_IS_VALID=1
  }
fi

# Each test runs in a temporary directory.
setup() {
  cd "$BATS_TEST_TMPDIR" || return
  unset NO_COLOR HEAPTAPE_LIBEXEC HEAPTAPE_SPOOL
  export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
}

teardown() {
  show_failure
}

# show_failure: prints the last `run` and the beginnings of the last written texts of a failed test,
# because only the log is available from other machines. Kills the background jobs of a failed test:
# some run until the test ends them.
show_failure() {
  local name
  [ -z "${BATS_TEST_COMPLETED:-}" ] || return 0
  printf 'status: %s\nstdout: %s\nstderr: %s\n' "${status:-}" "${output:-}" "${stderr:-}" | head -c 4000 | cat -v
  echo
  find . -maxdepth 1 -type f -size -1000k -printf '%T@ %f\n' | sort -rn | head -n 6 | cut -d' ' -f2- | while read -r name; do
    ! grep -Iq . "./$name" || { printf '%q:\n' "$name" && head -c 2000 "./$name" | cat -v && echo; }
  done
  # shellcheck disable=SC2046 # several numbers
  kill -9 $(jobs -p) 2>/dev/null || true
}

# Every JSON document printed by the tests of a file must match docs/reference/json.
teardown_file() {
  check_json
}

check_json() {
  local status=0
  [ -d "$BATS_FILE_TMPDIR/json" ] && [ -z "$HEAPTAPE_SANITIZED" ] || return 0
  "$HEAPTAPE_SOURCE/tools/check-json" --kept "$BATS_FILE_TMPDIR/json" || status=$?
  [ "$status" -eq 0 ] || [ "$status" -eq 77 ]
}

# A preloaded library and a sanitizer's runtime both require to be first.
skip_under_sanitizer() {
  [ -z "$HEAPTAPE_SANITIZED" ] || skip "the capture library cannot be preloaded under -fsanitize=$HEAPTAPE_SANITIZED"
}

# for_other_users FILE...: if other users cannot reach the build directory, copies heaptape and
# these files of the build, and sets $HEAPTAPE, $HEAPTAPE_BUILD, $HEAPTAPE_PROGRAMS and PATH to the
# copies.
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

# short_function NAME [DIRECTIVE]: writes short.s, which defines a function that is shorter than a
# jump, directly before another function. heaptape cannot redirect such a function.
short_function() {
  local code=ret bytes=1
  # The function continues in the next one.
  [ "$(uname -m)" = x86_64 ] || { code="bti c" bytes=4; }
  cat >short.s <<END
  .text
  .globl $1
  ${2:-}
  .type $1, %function
$1: $code
  .size $1, $bytes
after: ret
  .section .note.GNU-stack,"",%progbits
END
}

# maps_heaptape PID: the process maps a library of heaptape, in any directory.
maps_heaptape() {
  grep -q '[/:]libheaptape[^/]*$' "/proc/$1/maps"
}

# wait_until COMMAND...: repeats the command until it succeeds. Fails after 3000 attempts, which last
# at least a minute. The limit is not a time, because a machine may stop for longer.
wait_until() {
  local attempts=0
  until "$@"; do
    [ $((++attempts)) -lt 3000 ] || { echo "not within $attempts attempts: $*"; return 1; }
    sleep 0.02
  done
}

# has_events PID N: the recorder has read at least N events of the process. Loops call it, so it
# starts neither jq nor the script that keeps JSON.
has_events() {
  [[ $("$HEAPTAPE_BUILD/heaptape" ctl "$1" status --json 2>/dev/null) =~ '"events": '([0-9]+) ]] &&
    [ "${BASH_REMATCH[1]}" -ge "$2" ]
}

# Runs heaptape and sets $status, $output, $stderr, ${lines[@]} and ${stderr_lines[@]}.
# Like `run --separate-stderr`, with fewer commands.
heaptape() {
  local file=$BATS_TEST_TMPDIR/separate-stderr-$BASHPID
  output=$("$HEAPTAPE" "$@" 2>"$file") && status=0 || status=$?
  read -d '' -r stderr <"$file" || true
  IFS=$'\n' read -d '' -r -a lines <<<"$output" || true
  IFS=$'\n' read -d '' -r -a stderr_lines <<<"$stderr" || true
}

# fails_with STATUS TEXT...: the last run had this status and printed one line "heaptape: …" to
# standard error that has each TEXT.
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

# usage_fails TEXT...: the last run exited with 2 and printed one line with each TEXT and the usage
# line.
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

# is_stopped PID: all threads of the process are stopped.
is_stopped() {
  [ -z "$(grep -h '^State' /proc/"$1"/task/*/status | grep -v stopped)" ]
}

# expect WHAT COMMAND...: prints the last run if the command fails.
expect() {
  local what=$1
  shift
  "$@" && return
  printf 'expected: %s\nstatus: %s\nstdout: %s\nstderr: %s\n' "$what" "$status" "$output" "$stderr"
  return 1
}

# on_terminal COLUMNS COMMAND...: prints its output on a terminal of this width, including standard
# error.
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
