load ../helper

# Unpacks the project without its history, like `git archive`, and adds a git to PATH that records
# its calls.
unpack() {
  git -C "$HEAPTAPE_SOURCE" -c safe.directory='*' ls-files -co -z --exclude-standard >files 2>err || skip "no git repository here"
  mkdir tarball bin
  tar -C "$HEAPTAPE_SOURCE" -c --null --ignore-failed-read -T files 2>/dev/null | tar -C tarball -x
  printf '#!/bin/sh\necho "$*" >>%s/asked\nexit 99\n' "$PWD" >bin/git
  chmod +x bin/git
  export PATH=$PWD/bin:$PATH
}

@test "a tarball is built and tested without git" {
  unpack
  run meson setup tarball/build tarball
  echo "$output"
  [ "$status" -eq 0 ]
  tarball=$PWD/tarball
  for file in layers names sources; do
    HEAPTAPE_SOURCE=$tarball run bats --filter 'keep the include rules|begin as they should|over|only the command line' \
      "tarball/tests/house/$file.bats"
    echo "$output"
    [ "$status" -eq 0 ]
  done
  HEAPTAPE_SOURCE=$tarball run bats "tarball/tests/house/docs.bats" --filter 'prose'
  [ "$status" -eq 0 ]
  [ ! -e asked ] || { cat asked && false; }
}
