# pngquant: a palette, by OpenMP.
programs='pngquant gm'
packages='pngquant graphicsmagick'
licence=GPL-3.0-or-later

run() {
  image 600 400 >input.ppm
  gm convert input.ppm input.png
  record pngquant --speed 4 --output output.png 64 input.png
}
