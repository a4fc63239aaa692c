# vpxenc: VP9 with two threads.
programs=vpxenc
packages=vpx-tools
licence=BSD-3-Clause
varies='out err' # times

run() {
  video 640 360 "$(part 100)" >input.y4m
  record vpxenc --codec=vp9 --threads=2 --row-mt=1 --tile-columns=1 --cpu-used=7 --rt --ivf \
    -o output.ivf input.y4m
}
