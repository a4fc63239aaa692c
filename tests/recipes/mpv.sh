# mpv: decodes without output.
programs='mpv ffmpeg'
packages='mpv ffmpeg'
licence=GPL-2.0-or-later
varies='out err'

run() {
  video 320 180 "$(part 300)" >input.y4m
  ffmpeg -nostdin -loglevel error -i input.y4m -c:v mpeg4 input.avi
  record mpv --no-config --no-terminal --vo=null --ao=null --untimed --vd-lavc-threads=2 input.avi
}
