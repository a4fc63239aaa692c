// Fuzzes the export of a trace or a workload with correct checksums: the first byte selects the
// format, the second the contents. Every format must read its own output.
#include "base/frame.h"
#include "formats/export_file.h"
#include "formats/import.h"

#include "fuzz.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TRACE = 1, NO_STAMPS = 2, LIVE = 4 };

static int begin(void *context, const struct trace_session *s, bool has_times)
{
    (void)context, (void)s, (void)has_times;
    return 0;
}

static int put_process(void *context, const struct trace_process *p)
{
    (void)context, (void)p;
    return 0;
}

static int put_batch(void *context, struct trace_segment *segments, size_t n, uint64_t watermark)
{
    (void)context, (void)segments, (void)n, (void)watermark;
    return 0;
}

// Reads the output. An empty file is not an error.
static void import_back(const struct format *f, int fd)
{
    struct err e = {0};
    struct import im = {.format = f, .sink = {NULL, begin, put_process, put_batch}};
    off_t size = lseek(fd, 0, SEEK_END);
    struct input in = {.fd = fd, .owns_fd = true, .name = "exported", .size_bytes = (uint64_t)size};
    lseek(fd, 0, SEEK_SET);
    int rc = size > 0 ? import_run(&im, &in, &e) : 0;
    // A file may hold no events, and memory may be exhausted.
    if (rc < 0 && rc != -ENODATA && rc != -ENOMEM) {
        fprintf(stderr, "%s: %s\n", f->name, e.text);
        abort();
    }
    import_release(&im);
    input_close(&in);
}

// Returns the format with this number among those with an exporter, or NULL.
static const struct format *written_format(unsigned number)
{
    for (const struct format *const *f = formats; *f; f++) {
        if ((*f)->export.put && number-- == 0)
            return *f;
    }
    return NULL;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st, (void)type, (void)where;
    return remove(path);
}

static void export_folder(const char *from, struct export_settings *s)
{
    struct err e = {0};
    char folder[64];
    snprintf(folder, sizeof folder, "/tmp/heaptape-fuzz-%d", getpid());
    s->output = folder;
    s->force = true;
    export_file(from, s, &e);
    nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static void export_to_memory(const char *from, struct export_settings *s)
{
    struct err e = {0};
    s->output = "exported";
    s->fd = memfd_create("exported", MFD_CLOEXEC);
    if (export_file(from, s, &e) == 0 && formats_is_read(s->format))
        import_back(s->format, s->fd);
    else
        close(s->fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct input in;
    char path[32];
    const struct format *f = n < 2 ? NULL : written_format(data[0]);
    if (!f)
        return -1; // tells libFuzzer to drop the input
    unsigned how = data[1];
    fuzz_frames(&in, how & TRACE ? FRAME_MAGIC_TRACE : FRAME_MAGIC_WORKLOAD, data + 2, n - 2);
    snprintf(path, sizeof path, "/proc/self/fd/%d", in.fd);
    struct export_settings s = {
        .format = f, .stamps = !(how & NO_STAMPS), .live = how & LIVE && how & TRACE};
    if (f->export.folder)
        export_folder(path, &s);
    else
        export_to_memory(path, &s);
    input_close(&in);
    return 0;
}
