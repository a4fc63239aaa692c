# opj_compress: JPEG 2000 by two threads.
programs=opj_compress
packages=libopenjp2-tools
licence=BSD-2-Clause

run() {
  image 800 "$(part 6000)" >input.ppm
  record opj_compress -threads 2 -i input.ppm -r 20,10 -o output.jp2 >log.txt
}
varies=log.txt # times
