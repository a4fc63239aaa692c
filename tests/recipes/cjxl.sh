# cjxl with two threads.
programs=cjxl
packages=libjxl-tools
licence=BSD-3-Clause

run() {
  image 500 "$(part 3000)" >input.ppm
  record cjxl --quiet --num_threads=2 -e 4 input.ppm output.jxl
}
