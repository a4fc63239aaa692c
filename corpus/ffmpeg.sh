# ffmpeg: filters and two encoders, with threads for each.
programs=ffmpeg
packages=ffmpeg
licence=GPL-2.0-or-later

run() {
  video 320 180 "$(part 500)" >input.y4m
  sound "$(part 100)" >input.wav
  record ffmpeg -nostdin -loglevel error -i input.y4m -i input.wav -filter_threads 2 \
    -vf hqdn3d,scale=480:270,unsharp -c:v mpeg4 -threads 2 -c:a mp2 -bitexact output.mkv
}
