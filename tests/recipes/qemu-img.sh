# qemu-img: converts an image by its pool of threads.
programs=qemu-img
packages=qemu-utils
licence=GPL-2.0-only

run() {
  text "$(part 200000)" >input
  record qemu-img convert -f raw -O qcow2 -c -m 4 -W input output.qcow2
  qemu-img compare -f raw -F qcow2 input output.qcow2
}
varies=output.qcow2 # the order of clusters
