# svnserve with threads: a commit, then checkouts at the same time.
programs='svnserve svn svnadmin split'
packages=subversion
licence=Apache-2.0
varies='repository/* copy* err'

run() {
  svnadmin create repository
  printf '[general]\nanon-access = write\n' >repository/conf/svnserve.conf
  mkdir tree
  text "$(part 3000)" | split -b 5000 - tree/
  start svnserve -d --foreground -T --listen-host 127.0.0.1 --listen-port "$port" \
    -r "$PWD/repository"
  ready listening "$port"
  svn import -q -m first tree "svn://127.0.0.1:$port/tree"
  copies=''
  for c in 1 2 3; do
    svn checkout -q "svn://127.0.0.1:$port/tree" copy$c &
    copies="$copies $!"
  done
  wait $copies
  svn log -q "svn://127.0.0.1:$port/" | grep -c ^r
  diff -r -x .svn tree copy3
  stop 143
}
