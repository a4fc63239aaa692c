# hashdeep with two threads.
programs='hashdeep split'
packages=hashdeep
licence=GPL-2.0-or-later

run() {
  mkdir files
  text "$(part 40000)" | split -b 50000 - files/
  record hashdeep -j2 -r -b files >unsorted
  sort unsorted >sorted
  rm unsorted
}
