# clangd: parses a file and asks for completions in it.
programs=clangd-14
packages='clangd-14 libc6-dev'
licence=Apache-2.0
varies='err' # times

run() {
  code "$(part 200)" >input.c
  record clangd-14 --check=input.c --log=error
}
