load ../helper

# An installation that was moved, without the sources and the build directory.
install_and_move() {
  DESTDIR=$PWD/stage meson install -C "$HEAPTAPE_BUILD" --no-rebuild --quiet
  prefix=$(dirname "$(dirname "$(find stage -type f -name heaptape -path '*/bin/*')")")
  mv "$prefix" moved
  rm -rf stage
}

@test "an installation works after its prefix was moved" {
  skip_under_sanitizer
  bats_require_minimum_version 1.5.0
  install_and_move
  run --separate-stderr moved/bin/heaptape record -o a.ht -- sh -c 'exit 7'
  echo "$stderr"
  [ "$status" -eq 7 ]
  [ -s a.ht ]
  run --separate-stderr moved/bin/heaptape replay -a glibc a.ht
  echo "$stderr"
  [ "$status" -eq 0 ]
  has "$output" "glibc"
  [ -s moved/share/man/man1/heaptape-record.1 ] || ! command -v scdoc
  [ -s moved/share/bash-completion/completions/heaptape ]
  [ -s moved/share/fish/vendor_completions.d/heaptape.fish ]
  [ "$(head -n 1 moved/share/zsh/site-functions/_heaptape)" = "#compdef heaptape" ]
}
