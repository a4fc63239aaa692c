# aomenc with two threads.
programs=aomenc
packages=aom-tools
licence=BSD-2-Clause
varies='out err' # times

run() {
  video 320 180 "$(part 50)" >input.y4m
  record aomenc --threads=2 --row-mt=1 --cpu-used=8 --rt --ivf -o output.ivf input.y4m
}
