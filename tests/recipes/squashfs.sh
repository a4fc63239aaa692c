# mksquashfs: a read thread, a write thread and pools of two for the rest.
programs='mksquashfs split'
packages=squashfs-tools
licence=GPL-2.0-or-later

run() {
  mkdir files
  text "$(part 30000)" | split -b 50000 - files/
  record mksquashfs files output.sqsh -processors 2 -mkfs-time 1 -all-time 1 -no-progress -quiet
}
