# zstd with two workers; the big buffers of the workers are freed by other threads.
programs=zstd
packages=zstd
licence=BSD-3-Clause

run() {
  text "$(part 40000)" >input
  record zstd -q -T2 -12 input
}
