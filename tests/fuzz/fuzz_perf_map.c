// Fuzzes /tmp/perf-PID.map and jit-PID.dump, which any program can write. The file is read in
// pieces as it grows or starts over; the names are written to a trace and read back. A length of 2
// bytes precedes each piece; its highest bit starts the file over. Input with the magic of a
// jitdump is also read as a jitdump.
#include "record/processes/code_names.h"

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void need(bool ok)
{
    if (!ok)
        abort();
}

static bool is_same(const struct names *a, const struct names *b)
{
    bool same = a->n_entries == b->n_entries && a->n_functions == b->n_functions;
    for (size_t i = 0; same && i < a->n_entries; i++)
        same = a->entries[i].start == b->entries[i].start &&
               a->entries[i].bytes == b->entries[i].bytes;
    for (size_t i = 0; same && i < a->n_functions; i++)
        same = strcmp(names_text(a, a->functions[i].function),
                      names_text(b, b->functions[i].function)) == 0;
    return same;
}

// Writes the names like the recorder and looks them up like a reader.
static void check_names(const struct names *n)
{
    struct names again = {0};
    struct names_index index;
    struct buf frame = {0};
    uint32_t process = 0;
    for (size_t entry = 0; entry < n->n_entries;) {
        frame.size = 0;
        need(names_put(&frame, n, 7, &entry) == 0 &&
             names_get(frame.data, frame.size, &again, &process) == 0);
        need(process == 7);
    }
    need(is_same(n, &again) && names_index_init(&index, &again) == 0);
    for (size_t i = 0; i < again.n_entries; i++) {
        const struct names_entry *e = &again.entries[i],
                                 *found = names_find(&index, e->module, e->start);
        need(found && found->start == e->start && found->n == 1);
    }
    names_index_release(&index);
    names_release(&again);
    buf_release(&frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const struct code_names_process process = {0};
    struct code_names c;
    uint64_t written = 0;
    code_names_init(&c);
    c.map.fd = memfd_create("fuzz", MFD_CLOEXEC);
    need(c.map.fd >= 0);
    if (n > 6 && memcmp(data + 2, "DTiJ", 4) == 0)
        c.dump.fd = dup(c.map.fd);
    while (n >= 2) {
        size_t bytes = data[0] | (size_t)(data[1] & 127) << 8;
        if (data[1] & 128) {
            need(ftruncate(c.map.fd, 0) == 0);
            written = 0;
        }
        data += 2;
        n -= 2;
        bytes = bytes < n ? bytes : n;
        need(pwrite(c.map.fd, data, bytes, (off_t)written) == (ssize_t)bytes);
        written += bytes;
        code_names_read(&c, &process, false);
        data += bytes;
        n -= bytes;
    }
    code_names_read(&c, &process, true);
    check_names(&c.names);
    code_names_restart(&c);
    code_names_read(&c, &process, true);
    check_names(&c.names);
    code_names_release(&c);
    return 0;
}
