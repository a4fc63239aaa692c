# melt: a clip with two filters.
programs=melt
packages=melt
licence=GPL-2.0-or-later
varies='err *.avi'

run() {
  video 320 180 "$(part 200)" >input.y4m
  record melt -silent input.y4m -filter greyscale -filter mirror \
    -consumer avformat:output.avi real_time=-2 vcodec=mpeg4 an=1
}
