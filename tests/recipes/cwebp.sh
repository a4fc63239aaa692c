# cwebp with two threads.
programs=cwebp
packages=webp
licence=BSD-3-Clause

run() {
  image 800 "$(part 6000)" >input.ppm
  record cwebp -quiet -mt -m 4 -q 70 input.ppm -o output.webp
}
