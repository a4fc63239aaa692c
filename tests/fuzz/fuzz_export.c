// Fuzzes the export of a trace or a workload with correct checksums. The first byte selects the
// format. The second byte selects the contents. Every format must be able to read its own output,
// with the same calls.
#include "base/frame.h"
#include "formats/export_file.h"

#include "fuzz.h"
#include "round_trip.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TRACE = 1, NO_STAMPS = 2, LIVE = 4 };

// Returns the format with this number, or NULL. The formats that store calls have the first
// numbers, and the formats that store totals follow.
static const struct format *written_format(unsigned number)
{
    for (unsigned pass = 0; pass < 2; pass++) {
        for (const struct format *const *f = formats; *f; f++) {
            if ((pass == 0 ? (*f)->export.put != NULL : (*f)->export.profile != NULL) &&
                number-- == 0)
                return *f;
        }
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
    export_file(from, s, &e);
}

static void import_back(const char *from, const struct export_settings *s)
{
    struct err e = {0};
    if (round_trip(from, s->format, s->stamps, &e) > 0) {
        fprintf(stderr, "%s\n", e.text);
        abort();
    }
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
    else if (s.live || !formats_is_read(f))
        export_to_memory(path, &s);
    else
        import_back(path, &s);
    input_close(&in);
    return 0;
}
