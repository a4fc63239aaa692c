# rg: searches a directory by four threads.
programs='rg split'
packages=ripgrep
licence='MIT OR Unlicense'

run() {
  mkdir files
  text "$(part 40000)" | split -b 20000 - files/
  record rg -j4 -n '[aeiou]{3}[xyz]' files >unsorted
  sort unsorted | cksum
  rm unsorted
}
