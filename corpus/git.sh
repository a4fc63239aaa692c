# git: a repack of a generated history; the recorded process is git pack-objects.
programs='git awk'
packages=git
licence=GPL-2.0-only
varies='out repository/*'

run() {
  git init -q -b main repository
  cd repository || return
  awk -v n=$((1500 * size / 100 + 5)) 'BEGIN {
    for (c = 1; c <= n; c++) {
      text = ""
      for (l = 0; l < 60; l++)
        text = text sprintf("line %d of file %d: %d\n", l, c % 97, (l == c % 60) ? c * 7919 : l * 31)
      printf "commit refs/heads/main\nmark :%d\ncommitter A <a@b> %d +0000\ndata 7\ncommit\n", c, 1000000000 + c * 60
      if (c > 1) printf "from :%d\n", c - 1
      printf "M 100644 inline dir%d/file%d\ndata %d\n%s\n", c % 13, c % 97, length(text), text
    }
  }' | git fast-import --quiet --depth=0
  record git -c pack.threads=2 repack -q -a -d -f --depth=50 --window=50
}
