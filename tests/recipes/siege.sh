# siege: a thread for each of its users; nginx is not recorded.
programs='siege nginx'
packages='siege nginx-light'
licence=GPL-3.0-or-later
varies='* out err'

run() {
  page_server
  record siege -q -b -c 6 -r "$(part 300)" "http://127.0.0.1:$port/"
  kill "$nginx"
}
