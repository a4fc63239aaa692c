# gm: blur and resize an image, by OpenMP.
programs=gm
packages=graphicsmagick
licence=MIT

run() {
  image 600 400 >input.ppm
  record gm convert input.ppm -blur 0x3 -resize 150% -sharpen 0x2 output.ppm
}
