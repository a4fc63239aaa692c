# fio: two jobs as threads.
programs=fio
packages=fio
licence=GPL-2.0-only
varies='out job*'

run() {
  record fio --name=job --thread --numjobs=2 --rw=randrw --bs=4k --size="$(part 40)m" \
    --randseed=1 --ioengine=psync --fallocate=none
}
