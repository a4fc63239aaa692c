# HandBrakeCLI: a pipeline of threads from demultiplexer to x264.
programs='HandBrakeCLI ffmpeg'
packages='handbrake-cli ffmpeg'
licence=GPL-2.0-or-later
varies='out err *.mp4' # times

run() {
  video 320 180 "$(part 300)" >input.y4m
  ffmpeg -nostdin -loglevel error -i input.y4m -c:v mpeg4 input.avi
  record HandBrakeCLI -i input.avi -o output.mp4 -e x264 --encoder-preset fast
}
