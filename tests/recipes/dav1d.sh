# dav1d with three threads: AV1 made by aomenc.
programs='dav1d aomenc'
packages='dav1d aom-tools'
licence=BSD-2-Clause

run() {
  video 320 180 "$(part 100)" >input.y4m
  aomenc -q --threads=2 --cpu-used=9 --rt --ivf -o input.ivf input.y4m
  record dav1d -q --threads 3 -i input.ivf -o output.y4m
}
