# qemu-system-x86_64: boots a sector that ends the machine.
programs=qemu-system-x86_64
packages='qemu-system-x86 seabios'
licence=GPL-2.0-only

run() {
  # In real mode: a loop, then a byte to the port of the exit device.
  printf '\146\271\0\0\100\0\146\111\165\374\260\020\346\364\364' >code
  perl -0777 -ne 'print $_, "\0" x (510 - length), "\x55\xaa"' code >disk
  record qemu-system-x86_64 -accel tcg,thread=multi -smp 2 -m 64 -display none -vga none \
    -nic none -monitor none -serial none -drive file=disk,format=raw \
    -device isa-debug-exit,iobase=0xf4,iosize=4 || [ $? -eq 33 ]
}
