# xz with two threads and small blocks.
programs=xz
packages=xz-utils
licence=public-domain

run() {
  text "$(part 20000)" >input
  record xz -T2 --block-size=512KiB -3 -k input
}
