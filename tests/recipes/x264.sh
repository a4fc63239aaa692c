# x264 with two threads.
programs=x264
packages=x264
licence=GPL-2.0-or-later
varies=err # times

run() {
  video 320 180 "$(part 300)" >input.y4m
  record x264 --quiet --no-progress --threads 2 --preset medium -o output.264 input.y4m
}
