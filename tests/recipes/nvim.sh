# nvim without a display: edits, by libuv's threads.
programs=nvim
packages=neovim
licence=Apache-2.0

run() {
  text "$(part 5000)" >input
  record nvim --headless --clean -c '%s/a/A A/g' -c 'sort' -c 'w output' -c 'q!' input
}
