# qemu-system-x86_64: boots a sector that ends the machine.
programs=qemu-system-x86_64
packages='qemu-system-x86 seabios'
licence=GPL-2.0-only

run() {
  # In real mode: a loop, then a byte to the port of the exit device.
  perl -e 'my $code = "\x66\xb9\x00\x00\x40\x00\x66\x49\x75\xfc\xb0\x10\xe6\xf4\xf4"; print $code, "\0" x (510 - length $code), "\x55\xaa"' >disk
  record qemu-system-x86_64 -accel tcg,thread=multi -smp 2 -m 64 -display none -vga none -nic none -monitor none -serial none \
    -drive file=disk,format=raw -device isa-debug-exit,iobase=0xf4,iosize=4 || [ $? -eq 33 ]
}
