# gmic: filters in its own language, with OpenMP.
programs=gmic
packages=gmic
licence=CECILL-2.1

run() {
  image 300 200 >input.ppm
  record gmic -v -1 input.ppm bilateral 8,12 sharpen 50 rotate 20 round output output.ppm
}
