#include "fuzz.h"

#include "base/bytes.h"
#include "base/frame.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void need(bool ok)
{
    if (!ok)
        abort();
}

static int memory_file(void)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    need(fd >= 0);
    return fd;
}

static void take_file(struct input *in, int fd)
{
    off_t size = lseek(fd, 0, SEEK_END);
    need(size >= 0 && lseek(fd, 0, SEEK_SET) == 0);
    *in = (struct input){.fd = fd, .owns_fd = true, .name = "fuzz", .size_bytes = (uint64_t)size};
}

void fuzz_input(struct input *in, const uint8_t *data, size_t n)
{
    int fd = memory_file();
    need(write(fd, data, n) == (ssize_t)n);
    take_file(in, fd);
}

void fuzz_frames(struct input *in, uint32_t magic, const uint8_t *data, size_t n)
{
    enum { HEAD = 3 };
    struct output out = {.fd = memory_file(), .name = "fuzz"};
    struct frame_writer w;
    struct err e = {0};
    frame_writer_init(&w, &out, magic, 1, FRAME_CODEC_NONE, 0);
    while (n >= HEAD) {
        size_t size = data[1] | (size_t)data[2] << 8;
        size = size < n - HEAD ? size : n - HEAD;
        need(frame_write(&w, data[0], data + HEAD, size, &e) == 0);
        data += HEAD + size;
        n -= HEAD + size;
    }
    frame_writer_release(&w);
    // Append the trailer of a workload, in case the last frame is an index.
    take_file(in, out.fd);
}

void fuzz_output(struct output *out)
{
    struct err e = {0};
    need(output_open(out, "/dev/null", 0, &e) == 0);
}
