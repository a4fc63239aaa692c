# 7z with two threads.
programs=7z
packages=p7zip-full
licence=LGPL-2.1-or-later

run() {
  text "$(part 20000)" >input
  touch -d @1000000000 input
  record 7z a -mmt=2 -m0=lzma2 -mx=5 -bd output.7z input
}
