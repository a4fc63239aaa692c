# avifenc: AV1 by libaom with two threads.
programs=avifenc
packages=libavif-bin
licence=BSD-2-Clause

run() {
  video 320 240 1 >input.y4m
  record avifenc -j 2 -s 8 input.y4m output.avif
}
