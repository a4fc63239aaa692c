load ../helper

# tool NAME [FILTER]: tools/test without building first, because other tests use the build.
tool() {
  mkdir -p bin
  ln -sf /bin/true bin/ninja
  PATH=$PWD/bin:$PATH BUILD=$HEAPTAPE_BUILD run "$HEAPTAPE_SOURCE/tools/test" "$@"
  echo "$output"
}

@test "tools/test runs a unit test, and tests of it by pattern" {
  tool base_varint
  [ "$status" -eq 0 ]
  all=$(grep -c '\[ *OK \]' <<<"$output")
  name=$(sed -n 's/^\[ *OK \] \([a-z_]*\)$/\1/p' <<<"$output" | head -n 1)
  tool tests/unit/test_base_varint.c "${name%?}*"
  [ "$status" -eq 0 ]
  has "$output" "$name"
  [ "$(grep -c '\[ *OK \]' <<<"$output")" -lt "$all" ]
}

@test "tools/test runs a bats file with the environment, and tests of it by pattern" {
  tool usage 'help'
  [ "$status" -eq 0 ]
  has "$output" " help"
  tool commands/allocators.bats 'refused'
  [ "$status" -eq 0 ]
  [ "${#lines[@]}" -eq 2 ]
  has "$output" "ok 1 operands are refused"
}

@test "tools/test refuses unknown tests" {
  tool nonsense
  [ "$status" -eq 2 ]
  has "$output" "'nonsense' is 0 tests"
  tool
  [ "$status" -eq 2 ]
  has "$output" "tools/test NAME [FILTER]"
}

# A separate project with two packages that can be installed, and an option.
make_project() {
  mkdir -p project/tools pc
  cp "$HEAPTAPE_SOURCE/tools/build" project/tools/
  printf '%s\n' '#!/bin/sh' 'ls "$PKG_CONFIG_PATH"' >project/tools/setup
  chmod +x project/tools/setup
  printf '%s\n' "project('p')" "x = dependency('x', required: false)" \
    "message('x is ' + x.found().to_string() + ', o is ' + get_option('o'))" >project/meson.build
  echo "option('o', type: 'string', value: 'none')" >project/meson_options.txt
  export PKG_CONFIG_PATH=$PWD/pc
}

# builds TEXT ARGUMENT...: tools/build configures, and meson prints TEXT. If TEXT is empty, nothing
# is configured.
builds() {
  local text=$1
  shift
  run project/tools/build build "$@"
  echo "$output"
  [ "$status" -eq 0 ]
  [ "$(sed -n 's/^Message: //p' <<<"$output")" = "$text" ]
}

@test "tools/build reconfigures after a change of a package, an option or the folder" {
  make_project
  builds "x is false, o is none"
  builds ""
  printf '%s\n' 'Name: x' 'Description: x' 'Version: 1' >pc/x.pc
  builds "x is true, o is none"
  builds ""
  builds "x is true, o is a b" "-Do=a b"
  builds "" "-Do=a b"
  # An option that was removed has its default again.
  builds "x is true, o is none"
  mv project "pro ject"
  mkdir project
  mv "pro ject" project/heaptape
  run project/heaptape/tools/build build
  [ "$status" -eq 0 ]
  has "$output" "x is true, o is none"
  # The same applies if the directory was configured by hand.
  rm -r project/heaptape/build
  rm pc/x.pc
  (cd project/heaptape && meson setup build)
  printf '%s\n' 'Name: x' 'Description: x' 'Version: 1' >pc/x.pc
  run project/heaptape/tools/build build
  has "$output" "x is true, o is none"
}

@test "progress is a line every few seconds, with done and total steps" {
  source "$HEAPTAPE_SOURCE/tools/progress.bash"
  log=$PWD/log
  printf '%s\n' "ninja: Entering directory" "[3/90] Compiling a" "[4/90] Linking b" >"$log"
  [ "$(progress_of "$log")" = "4 of 90, " ]
  printf '%s\n' "  9/212 heaptape:unit / a   OK   0.1s" " 10/212 heaptape:unit / b   ERROR   0.1s" >"$log"
  [ "$(progress_of "$log")" = "10 of 212, " ]
  printf '%s\n' "dlstatus:1:20.5:Retrieving file 2 of 9" "pmstatus:libc6:45.2:Unpacking libc6 (amd64)" >"$log"
  [ "$(progress_of "$log")" = "45 %, Unpacking libc6 (amd64), " ]
  [ -z "$(progress_of none)" ]
  # The command waits for the line, because a busy machine prints it late.
  status=0
  with_progress "a text" "$log" timeout 60 bash -c 'echo "[1/2] a"; until grep -q "1 of 2" printed; do sleep 0.1; done; echo "[2/2] b"; exit 3' \
    >printed || status=$?
  [ "$status" -eq 3 ]
  grep -qx '  a text: 1 of 2, [0-9]* s' printed
  [ "$(grep -vcx '  a text: \([12] of 2, \)\?[0-9]* s' printed)" -eq 0 ]
  [ "$(wc -l <"$log")" -eq 2 ]
}

@test "progress lines of a script: its EXIT trap runs at its end alone, and its status is kept" {
  cat >script <<'END'
set -euo pipefail
source "$1"
trap 'echo trap' EXIT
for _ in {1..50}; do
  with_progress short log true
done
with_progress long log timeout 60 sh -c 'echo "[3/7] a"; sleep 8; exit 5' || echo "status $?"
END
  run bash script "$HEAPTAPE_SOURCE/tools/progress.bash"
  # A busy machine prints the line late.
  [[ "$output" =~ ^'  long: 3 of 7, '[0-9]+$' s\nstatus 5\ntrap'$ ]]
}

# perturbed COMMAND...: prints MALLOC_PERTURB_ of a program that the script of the tests starts as
# heaptape.
perturbed() {
  printf '#!/bin/sh\necho "${MALLOC_PERTURB_:-0}"\n' >real
  chmod +x real
  sed "s,^real=.*,real=$PWD/real," "$HEAPTAPE_PROGRAMS/heaptape" >script
  bash script "$@"
}

@test "glibc fills the blocks of heaptape, but only on request those of the programs that it starts" {
  for value in '' 0; do
    [ "$(MALLOC_PERTURB_=$value perturbed stat a.ht)" -gt 0 ]
    [ "$(MALLOC_PERTURB_=$value perturbed record true)" -eq 0 ]
    [ "$(MALLOC_PERTURB_=$value perturbed replay a.htw)" -eq 0 ]
  done
  [ "$(MALLOC_PERTURB_=7 perturbed stat a.ht)" -eq 7 ]
  [ "$(MALLOC_PERTURB_=7 perturbed record true)" -eq 7 ]
  set_for() { jq -r ".[] | select(.name == \"$1\").env.MALLOC_PERTURB_" "$HEAPTAPE_BUILD/meson-info/intro-tests.json"; }
  [ "$(set_for hostile_order)" = 0 ]
  [ "$(set_for base_buf)" = null ]
}
