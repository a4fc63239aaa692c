# The Debian packages. HEAPTAPE_TEST_PACKAGES=1 builds and installs them, which takes minutes.
load ../helper

long() {
  local program
  [ -n "${HEAPTAPE_TEST_PACKAGES:-}" ] || skip "HEAPTAPE_TEST_PACKAGES=1 builds and installs the packages"
  for program; do
    command -v "$program" >/dev/null || skip "no $program"
  done
}

@test "the packages have the version of the project" {
  project=$(sed -n "s/^ *version: '\(.*\)',$/\1/p" "$HEAPTAPE_SOURCE/meson.build")
  changelog=$(sed -n '1s/^heaptape (\(.*\)-[0-9a-z]*) .*/\1/p' "$HEAPTAPE_SOURCE/debian/changelog")
  [ -n "$project" ]
  [ "$project" = "$changelog" ]
}

@test "each installed file is in one package, and packages have no other files" {
  DESTDIR=$PWD/stage meson install -C "$HEAPTAPE_BUILD" --no-rebuild --quiet
  prefix=$(dirname "$(dirname "$(find stage -type f -name heaptape -path '*/bin/*')")")
  # Without dpkg-architecture (package dpkg-dev), meson installs libraries into a directory other
  # than Debian's.
  (cd "$prefix" && find . ! -type d -printf 'usr/%P\n') | sed "s|^usr/lib64/|usr/lib/$(uname -m)-linux-gnu/|" | sort >files
  [ -s files ]
  # meson does not install the files of the documentation.
  cat "$HEAPTAPE_SOURCE"/debian/{heaptape,libheaptape-dev,libheaptape-trace1,libheaptape-trace-dev,python3-heaptape}.install | cut -d' ' -f1 >places
  while read -r file; do
    echo "$file"
    n=0
    while read -r place; do
      # shellcheck disable=SC2053 # a place may be a pattern
      [[ $file != $place && $file != $place/* ]] || n=$((n + 1))
    done <places
    [ "$n" -eq 1 ]
  done <files
  while read -r place; do
    echo "$place"
    grep -q "^${place//\*/[^/]*}\(/\|$\)" files
  done <places
}

@test "build dependencies of the packages are those of tools/setup" {
  sed -n '/^Build-Depends:/,/^[A-Z][a-z]*-/p' "$HEAPTAPE_SOURCE/debian/control" | tr ',' ' ' | xargs -n 1 | sed 's/:any//' >named
  # The compiler and ninja are dependencies of others; pkg-config is now in pkgconf.
  sed -n 's/^build  \([^ ]*\).*/\1/p' "$HEAPTAPE_SOURCE/tools/setup" |
    grep -vx 'gcc\|libc6-dev\|ninja-build\|pkg-config' >wanted
  [ -s wanted ]
  while read -r package; do
    echo "$package"
    grep -qx "$package" named
  done <wanted
}

@test "tools/package names missing programs" {
  run "$HEAPTAPE_SOURCE/tools/package"
  [ "$status" -eq 2 ]
  [ "$output" = "usage: tools/package [--check] [--arch ARCH] DIR" ]
  for arguments in --nonsense '--check --arch arm64 packages' 'packages more' '--arch packages'; do
    # shellcheck disable=SC2086 # several words
    run "$HEAPTAPE_SOURCE/tools/package" $arguments
    [ "$status" -eq 2 ]
  done
  mkdir bin
  for program in sh sed dirname mkdir; do
    ln -s "$(command -v "$program")" bin/
  done
  PATH=$PWD/bin run "$HEAPTAPE_SOURCE/tools/package" packages
  [ "$status" -eq 1 ]
  has "$output" "tools/package: no dpkg-buildpackage: run apt-get install dpkg-dev"
}

@test "tools/tarball names missing programs" {
  run "$HEAPTAPE_SOURCE/tools/tarball"
  [ "$status" -eq 2 ]
  [ "$output" = "usage: tools/tarball DIR" ]
  mkdir bin
  for program in bash sh sed dirname mkdir; do
    ln -s "$(command -v "$program")" bin/
  done
  PATH=$PWD/bin run "$HEAPTAPE_SOURCE/tools/tarball" tarball
  [ "$status" -eq 1 ]
  [ "$output" = "tools/tarball: no mmdebstrap: run apt-get install mmdebstrap" ]
}

# Debian 11 has the oldest supported C library, in which dlsym is in libdl.
@test "long: the tarball records, reads and replays on Debian 11, 12 and 13" {
  long mmdebstrap
  "$HEAPTAPE_SOURCE/tools/tarball" "$PWD/tarball"
  printf '%s\n' '#!/bin/sh' 'set -eux' 'cd /tmp' 'tar -xJf heaptape-*.tar.xz --transform "s|^heaptape-[^/]*|moved|"' \
    'moved/bin/heaptape record --stacks -o ls.ht -- ls /' 'moved/bin/heaptape stat ls.ht | grep -q "^events  *[1-9]"' \
    'moved/bin/heaptape replay -r 1 ls.ht' >chrooted
  chmod +x chrooted
  for release in bullseye bookworm trixie; do
    mmdebstrap --variant=apt --include=xz-utils --format=null --customize-hook="copy-in $(echo "$PWD"/tarball/*.tar.xz) chrooted /tmp" \
      --chrooted-customize-hook=/tmp/chrooted "$release" /dev/null
  done
}

# The second build uses Debian's command, another directory, umask, locale and time zone.
@test "long: two builds of the packages are identical" {
  long dpkg-buildpackage dh
  "$HEAPTAPE_SOURCE/tools/package" "$BATS_FILE_TMPDIR/packages"
  mkdir again
  cd again
  dpkg-source -x "$BATS_FILE_TMPDIR"/packages/*.dsc elsewhere
  (
    cd elsewhere
    umask 027
    export LC_ALL=POSIX TZ=Asia/Tokyo HOME=/nonexistent DEB_BUILD_OPTIONS="nocheck parallel=3" DEB_BUILD_PROFILES=nocheck
    unset SOURCE_DATE_EPOCH
    dpkg-buildpackage -b -us -uc
  )
  packages=(*.deb)
  [ ${#packages[@]} -eq "$(ls "$BATS_FILE_TMPDIR"/packages/*.deb | wc -l)" ]
  [ ${#packages[@]} -ge 7 ]
  for package in "${packages[@]}"; do
    echo "$package"
    cmp "$package" "$BATS_FILE_TMPDIR/packages/$package"
  done
}

@test "long: packages for arm64 have its programs and libraries" {
  long dpkg-buildpackage dh aarch64-linux-gnu-gcc
  "$HEAPTAPE_SOURCE/tools/package" --arch arm64 arm64
  for package in heaptape libheaptape-trace1; do
    [ "$(dpkg-deb -f arm64/"$package"_*.deb Architecture)" = arm64 ]
    dpkg-deb -x arm64/"$package"_*.deb files
  done
  find files -type f \( -name '*.so*' -o -path '*/bin/*' \) -print0 | xargs -0 file -b >kinds
  [ -s kinds ]
  [ -z "$(grep -v 'ARM aarch64' kinds)" ]
}

@test "long: lintian has neither errors nor warnings" {
  long lintian
  [ -d "$BATS_FILE_TMPDIR/packages" ] || skip "no packages were built"
  run lintian --fail-on error,warning --tag-display-limit 0 "$BATS_FILE_TMPDIR"/packages/*.changes
  echo "$output"
  [ "$status" -eq 0 ]
}

@test "long: installed in a chroot, heaptape records, reads and replays, and has man pages and completion" {
  long mmdebstrap
  [ -d "$BATS_FILE_TMPDIR/packages" ] || skip "no packages were built"
  cat >chrooted <<'END'
#!/bin/sh
set -eux
cd /tmp
apt-get install -y -q ./heaptape_*.deb ./heaptape-doc_*.deb ./libheaptape-dev_*.deb \
  ./libheaptape-trace1_*.deb ./libheaptape-trace-dev_*.deb ./python3-heaptape_*.deb gcc libc6-dev pkg-config
./record
./read-library
test -s /usr/share/bash-completion/completions/heaptape
test -s /usr/share/fish/vendor_completions.d/heaptape.fish
test -s /usr/share/zsh/vendor-completions/_heaptape
test -s /usr/include/heaptape/heaptape.h
test -s /usr/share/doc/heaptape/docs/guide/record.md
apt-get purge -y -q heaptape libheaptape-dev heaptape-doc libheaptape-trace1 libheaptape-trace-dev python3-heaptape
left=$(find / -xdev -name '*heaptape*' ! -path '/tmp/*' ! -path '/var/log/*')
test -z "$left"
END
  chmod +x chrooted
  mmdebstrap --variant=apt --include=man-db --format=null \
    --customize-hook="copy-in $(echo "$BATS_FILE_TMPDIR"/packages/*.deb) $HEAPTAPE_SOURCE/debian/tests/record $HEAPTAPE_SOURCE/debian/tests/read-library chrooted /tmp" \
    --chrooted-customize-hook=/tmp/chrooted "$(. /etc/os-release && echo "$VERSION_CODENAME")" /dev/null
}
