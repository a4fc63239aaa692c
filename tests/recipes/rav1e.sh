# rav1e, which is written in Rust: tiles by two threads.
programs=rav1e
packages=rav1e
licence=BSD-2-Clause
varies='out err' # times

run() {
  video 320 180 "$(part 60)" >input.y4m
  record rav1e input.y4m -o output.ivf --threads 2 --speed 10 --tiles 4 --quiet
}
