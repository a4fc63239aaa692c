# vips: a pipeline of regions on a pool of threads.
programs=vips
packages=libvips-tools
licence=LGPL-2.1-or-later

run() {
  image 1000 "$(part 6000)" >input.ppm
  record vips --vips-concurrency=3 gaussblur input.ppm "output.ppm[strip]" 3
}
