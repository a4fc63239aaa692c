load ../helper

# The tool's test NAME [FILTER], without building first: other tests run what is built.
tool() {
  mkdir -p bin
  ln -sf /bin/true bin/ninja
  PATH=$PWD/bin:$PATH BUILD=$HEAPTAPE_BUILD run "$HEAPTAPE_SOURCE/tools/test" "$@"
  echo "$output"
}

@test "tools/test runs a unit test, and those of its tests that a pattern names" {
  tool base_varint
  [ "$status" -eq 0 ]
  all=$(grep -c '\[ *OK \]' <<<"$output")
  name=$(sed -n 's/^\[ *OK \] \([a-z_]*\)$/\1/p' <<<"$output" | head -n 1)
  tool tests/unit/test_base_varint.c "${name%?}*"
  [ "$status" -eq 0 ]
  has "$output" "$name"
  [ "$(grep -c '\[ *OK \]' <<<"$output")" -lt "$all" ]
}

@test "tools/test runs a bats file with the environment, and a part of it" {
  tool usage 'help'
  [ "$status" -eq 0 ]
  has "$output" " help"
  tool commands/allocators.bats 'refused'
  [ "$status" -eq 0 ]
  [ "${#lines[@]}" -eq 2 ]
  has "$output" "ok 1 operands are refused"
}

@test "tools/test says what is no test" {
  tool nonsense
  [ "$status" -eq 2 ]
  has "$output" "'nonsense' is 0 tests"
  tool
  [ "$status" -eq 2 ]
  has "$output" "tools/test NAME [FILTER]"
}
