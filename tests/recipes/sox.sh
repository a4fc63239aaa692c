# sox: effects on two voices, by OpenMP.
programs=sox
packages=sox
licence=GPL-2.0-or-later

run() {
  sound "$(part 600)" >input.wav
  record sox --multi-threaded -R input.wav -c 2 output.wav rate 44100 reverb tempo 1.2
}
