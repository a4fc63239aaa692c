# heif-enc: HEVC by x265.
programs='heif-enc gm'
packages='libheif-examples graphicsmagick'
licence=LGPL-3.0-or-later

run() {
  image 400 300 >input.ppm
  gm convert input.ppm input.jpg
  record heif-enc -q 50 input.jpg -o output.heic
}
