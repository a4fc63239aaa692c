# pigz with four threads.
programs=pigz
packages=pigz
licence=Zlib

run() {
  text "$(part 40000)" >input
  record pigz -p 4 -n -T -k input
}
