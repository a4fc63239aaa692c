# SvtAv1EncApp: more than fifty threads.
programs=SvtAv1EncApp
packages=svt-av1
licence=BSD-3-Clause
varies='out err' # times

run() {
  video 320 180 "$(part 200)" >input.y4m
  record SvtAv1EncApp -i input.y4m -b output.ivf --preset 10 --lp 2
}
