# zstd with two workers; other threads free the large buffers of the workers.
programs=zstd
packages=zstd
licence=BSD-3-Clause

run() {
  text "$(part 40000)" >input
  record zstd -q -T2 -12 input
}
