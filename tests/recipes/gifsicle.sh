# gifsicle with two threads: resize an animation.
programs='gifsicle gm'
packages='gifsicle graphicsmagick'
licence=GPL-2.0-only

run() {
  image 300 200 >1.ppm
  gm convert 1.ppm -rotate 90 2.ppm
  gm convert -delay 10 1.ppm 2.ppm 1.ppm 2.ppm input.gif
  record gifsicle -j2 -O3 --resize 400x400 --colors 64 input.gif -o output.gif
}
