# x265: frame threads and a pool of two.
programs=x265
packages=x265
licence=GPL-2.0-or-later
varies=err # times

run() {
  video 320 180 "$(part 150)" >input.y4m
  record x265 --log-level error --pools 2 --preset fast -o output.265 input.y4m
}
