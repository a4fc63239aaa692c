// Perfetto's heap profile. The trace contains 64 dumps of the live blocks by call stack, as
// heapprofd writes them, and a last dump of the blocks that were live at the peak. The field
// numbers are defined in protos/perfetto/trace/ of github.com/google/perfetto.
#include "base/intern.h"
#include "base/printable.h"
#include "base/protobuf.h"
#include "formats/heap_profile.h"

#include <stdlib.h>
#include <string.h>

enum { DUMPS = 64, SEQUENCE = 1 };

// Field numbers, by message.
enum { TRACE_PACKET = 1 };
enum {
    PACKET_PROCESS_TREE = 2,
    PACKET_CLOCK_SNAPSHOT = 6,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE_ID = 10,
    PACKET_INTERNED_DATA = 12,
    PACKET_SEQUENCE_FLAGS = 13,
    PACKET_PROFILE = 37
};
enum { SEQUENCE_STATE_CLEARED = 1, SEQUENCE_NEEDS_STATE = 2 }; // values of PACKET_SEQUENCE_FLAGS
enum { CLOCKS_CLOCK = 1 };
enum { CLOCK_ID = 1, CLOCK_TIMESTAMP = 2 };
enum { CLOCK_REALTIME_ID = 1, CLOCK_MONOTONIC_COARSE_ID = 4, CLOCK_BOOTTIME_ID = 6 };
enum { TREE_PROCESS = 1 };
enum { PROCESS_PID = 1, PROCESS_ARGUMENT = 3 };
enum {
    INTERNED_FUNCTION_NAME = 5,
    INTERNED_FRAME = 6,
    INTERNED_STACK = 7,
    INTERNED_BUILD_ID = 16,
    INTERNED_MAPPING_PATH = 17,
    INTERNED_SOURCE_PATH = 18,
    INTERNED_MAPPING = 19
};
enum { STRING_ID = 1, STRING_TEXT = 2 };
enum {
    MAPPING_ID = 1,
    MAPPING_BUILD_ID = 2,
    MAPPING_START = 4,
    MAPPING_LIMIT = 5,
    MAPPING_PATH = 7,
    MAPPING_OFFSET = 8
};
enum {
    FRAME_ID = 1,
    FRAME_FUNCTION = 2,
    FRAME_MAPPING = 3,
    FRAME_ADDRESS = 4,
    FRAME_SOURCE_PATH = 5,
    FRAME_LINE = 6
};
enum { STACK_ID = 1, STACK_FRAME = 2 };
enum { PROFILE_HEAP = 5, PROFILE_INDEX = 7 };
enum {
    HEAP_PID = 1,
    HEAP_SAMPLE = 2,
    HEAP_FROM_START = 3,
    HEAP_TIMESTAMP = 9,
    HEAP_NAME = 11,
    HEAP_SAMPLING_BYTES = 12,
    HEAP_ASKED_SAMPLING_BYTES = 13,
    HEAP_FROM_TIMESTAMP = 15
};
enum {
    SAMPLE_STACK = 1,
    SAMPLE_ALLOCATED_BYTES = 2,
    SAMPLE_FREED_BYTES = 3,
    SAMPLE_ALLOCATIONS = 5,
    SAMPLE_FREES = 6
};

// Totals of a site, as of the last dump that contains the site.
struct perfetto_site {
    uint64_t allocated_bytes, freed_bytes, allocations, frees;
    bool defined; // true if the stack was written
};

struct perfetto {
    struct heap_profile profile;
    struct intern functions, files;
    struct map frames; // maps a code address to the number of its first frame
    uint64_t n_frames;
    // Indexed by module, with one more entry for code without a file: true if the mapping was
    // written.
    bool *mappings;
    struct perfetto_site *sites;
    size_t n_sites, sites_capacity;
    struct buf interned;    // message that defines new stacks
    uint64_t n_dumps, from; // number of dumps, and time of the last dump
    bool began;             // true if a packet of the sequence was written
    struct buf packet, heap, message;
    int rc; // -ENOMEM, or 0
};

static void put_u64(struct perfetto *p, struct buf *to, unsigned field, uint64_t v)
{
    p->rc = protobuf_put_u64(to, field, v) < 0 ? -ENOMEM : p->rc;
}

static void put_bytes(struct perfetto *p, struct buf *to, unsigned field, const void *bytes,
                      size_t n)
{
    p->rc = protobuf_put_bytes(to, field, bytes, n) < 0 ? -ENOMEM : p->rc;
}

static void put_message(struct perfetto *p, struct buf *to, unsigned field, struct buf *message)
{
    p->rc = protobuf_put_message(to, field, message) < 0 ? -ENOMEM : p->rc;
}

// Writes p->packet and clears it.
static void write_packet(struct perfetto *p)
{
    put_message(p, &p->message, TRACE_PACKET, &p->packet);
    export_buffer_put(&p->profile.x->out, p->message.data, p->message.size);
    p->message.size = 0;
}

// Begins a packet. All packets belong to one sequence, and share its interned strings, frames and
// stacks.
static void begin_packet(struct perfetto *p)
{
    put_u64(p, &p->packet, PACKET_SEQUENCE_ID, SEQUENCE);
    put_u64(p, &p->packet, PACKET_SEQUENCE_FLAGS,
            p->began ? SEQUENCE_NEEDS_STATE : SEQUENCE_STATE_CLEARED);
    put_u64(p, &p->packet, PACKET_TIMESTAMP, p->profile.now);
    p->began = true;
}

static void put_interned_string(struct perfetto *p, unsigned field, uint64_t id, const char *text,
                                size_t n)
{
    put_u64(p, &p->message, STRING_ID, id);
    put_bytes(p, &p->message, STRING_TEXT, text, n);
    put_message(p, &p->interned, field, &p->message);
}

// Returns the number of the string. If the string is new, writes its definition.
static uint64_t string_number(struct perfetto *p, struct intern *strings, unsigned field,
                              const char *text)
{
    bool is_new = false;
    uint64_t number = intern_number(strings, text, &is_new);
    char *copy = is_new ? printable_new(text) : NULL;
    if (copy)
        put_interned_string(p, field, number, copy, strlen(copy));
    if (!number || (is_new && !copy))
        p->rc = -ENOMEM;
    free(copy);
    return number;
}

static unsigned hex_digit(char c)
{
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a' + 10);
}

static void put_build_id(struct perfetto *p, uint64_t id, const char *digits)
{
    struct buf bytes = {0};
    for (; digits[0] && digits[1]; digits += 2) {
        if (buf_put_u8(&bytes, (uint8_t)(hex_digit(digits[0]) << 4 | hex_digit(digits[1]))) < 0)
            p->rc = -ENOMEM;
    }
    put_interned_string(p, INTERNED_BUILD_ID, id, (const char *)bytes.data, bytes.size);
    buf_release(&bytes);
}

// Returns the number of the frame's mapping. Code without a file gets a separate mapping, because
// the viewer identifies a frame by mapping and address.
static uint64_t mapping_number(struct perfetto *p, const struct workload_frame *f)
{
    const struct workload_sites *s = &p->profile.sites;
    const struct workload_module *m = f->module ? &s->modules[f->module - 1] : NULL;
    uint64_t id = f->module ? f->module : s->n_modules + 1;
    if (p->mappings[id])
        return id;
    p->mappings[id] = true;
    const char *path = m ? m->path : "";
    put_interned_string(p, INTERNED_MAPPING_PATH, id, path, strlen(path));
    if (m)
        put_build_id(p, id, m->build_id);
    put_u64(p, &p->message, MAPPING_ID, id);
    put_u64(p, &p->message, MAPPING_PATH, id);
    if (m) {
        put_u64(p, &p->message, MAPPING_BUILD_ID, id);
        put_u64(p, &p->message, MAPPING_START, m->start);
        put_u64(p, &p->message, MAPPING_LIMIT, m->start + m->bytes);
        put_u64(p, &p->message, MAPPING_OFFSET, m->offset);
    }
    put_message(p, &p->interned, INTERNED_MAPPING, &p->message);
    return id;
}

static void put_frame(struct perfetto *p, const struct workload_frame *f, const struct symbol *s)
{
    const struct workload_module *m =
        f->module ? &p->profile.sites.modules[f->module - 1] : &(struct workload_module){0};
    uint64_t function = string_number(p, &p->functions, INTERNED_FUNCTION_NAME, s->function),
             file = *s->file && s->line ? string_number(p, &p->files, INTERNED_SOURCE_PATH, s->file)
                                        : 0,
             mapping = mapping_number(p, f);
    put_u64(p, &p->message, FRAME_ID, ++p->n_frames);
    put_u64(p, &p->message, FRAME_FUNCTION, function);
    put_u64(p, &p->message, FRAME_MAPPING, mapping);
    // The call precedes the return address.
    put_u64(p, &p->message, FRAME_ADDRESS, f->address ? f->address - 1 - m->start + m->offset : 0);
    if (file) {
        put_u64(p, &p->message, FRAME_SOURCE_PATH, file);
        put_u64(p, &p->message, FRAME_LINE, (uint64_t)s->line);
    }
    put_message(p, &p->interned, INTERNED_FRAME, &p->message);
}

// Returns the number of the first frame of the address, which is the innermost function. Sets *n to
// the number of frames.
static uint64_t frames_of(struct perfetto *p, const struct workload_frame *f, size_t *n)
{
    static const struct symbol unknown = {.function = "(unknown)", .file = "", .module = ""};
    const struct symbol *found = &unknown;
    uint64_t key = workload_sites_key(f), first = map_get(&p->frames, key);
    *n = f->address ? symbols_of(p->profile.symbols, f, &found) : 1;
    if (first)
        return first;
    first = p->n_frames + 1;
    for (size_t i = 0; i < *n; i++)
        put_frame(p, f, &found[i]);
    if (!*n || map_put(&p->frames, key, first) < 0)
        p->rc = -ENOMEM;
    return first;
}

// Defines the stack of a site, beginning with the outermost function. The stack's number is site +
// 1.
static void define_stack(struct perfetto *p, uint32_t site)
{
    static const struct workload_frame unknown = {0};
    uint32_t n_frames;
    const struct workload_frame *frames = heap_profile_frames(&p->profile, site, &n_frames);
    struct buf stack = {0};
    if (!n_frames)
        frames = &unknown, n_frames = 1;
    put_u64(p, &stack, STACK_ID, site + 1);
    for (uint32_t i = n_frames; i-- > 0;) {
        size_t n;
        uint64_t first = frames_of(p, &frames[i], &n);
        while (n-- > 0)
            put_u64(p, &stack, STACK_FRAME, first + n);
    }
    put_message(p, &p->interned, INTERNED_STACK, &stack);
    buf_release(&stack);
}

static void write_interned(struct perfetto *p)
{
    if (!p->interned.size)
        return;
    begin_packet(p);
    put_message(p, &p->packet, PACKET_INTERNED_DATA, &p->interned);
    write_packet(p);
}

// Begins a heap in p->heap that covers the time from p->from to `to`.
static void begin_heap(struct perfetto *p, const char *name, uint64_t to)
{
    const struct workload_header *h = p->profile.header;
    uint64_t rate = h->stack_sample_bytes ? h->stack_sample_bytes : 1;
    put_u64(p, &p->heap, HEAP_PID, h->pid);
    put_u64(p, &p->heap, HEAP_FROM_START, !p->profile.summary.preexisting_blocks);
    put_u64(p, &p->heap, HEAP_FROM_TIMESTAMP, p->from);
    put_u64(p, &p->heap, HEAP_TIMESTAMP, to);
    put_bytes(p, &p->heap, HEAP_NAME, name, strlen(name));
    put_u64(p, &p->heap, HEAP_SAMPLING_BYTES, rate);
    put_u64(p, &p->heap, HEAP_ASKED_SAMPLING_BYTES, rate);
}

static void write_heap(struct perfetto *p)
{
    struct buf profile = {0};
    write_interned(p);
    put_message(p, &profile, PROFILE_HEAP, &p->heap);
    put_u64(p, &profile, PROFILE_INDEX, p->n_dumps++);
    begin_packet(p);
    put_message(p, &p->packet, PACKET_PROFILE, &profile);
    write_packet(p);
    buf_release(&profile);
}

static void put_sample(struct perfetto *p, uint32_t site, const struct perfetto_site *s)
{
    put_u64(p, &p->message, SAMPLE_STACK, site + 1);
    put_u64(p, &p->message, SAMPLE_ALLOCATED_BYTES, s->allocated_bytes);
    put_u64(p, &p->message, SAMPLE_FREED_BYTES, s->freed_bytes);
    put_u64(p, &p->message, SAMPLE_ALLOCATIONS, s->allocations);
    put_u64(p, &p->message, SAMPLE_FREES, s->frees);
    put_message(p, &p->heap, HEAP_SAMPLE, &p->message);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

// Raises *s to the current totals of the site. Estimates can round down, but the viewer expects
// totals that never decrease. Returns false if *s is unchanged.
static bool raise_totals(const struct perfetto *p, uint32_t site, struct perfetto_site *s)
{
    struct heap_profile_level l = heap_profile_level(&p->profile, site);
    const struct perfetto_site was = *s;
    s->allocated_bytes = larger(was.allocated_bytes, l.allocated_bytes);
    s->allocations = larger(was.allocations, l.allocated_blocks);
    s->freed_bytes = larger(was.freed_bytes, less(s->allocated_bytes, l.live_bytes));
    s->frees = larger(was.frees, less(s->allocations, l.live_blocks));
    return s->allocations != was.allocations || s->frees != was.frees ||
           s->allocated_bytes != was.allocated_bytes || s->freed_bytes != was.freed_bytes;
}

// Writes the sites that changed since the last dump.
static void write_dump(struct perfetto *p)
{
    size_t n = p->profile.counts.n_sites;
    if (HT_EXTEND(&p->sites, &p->n_sites, &p->sites_capacity, n) < 0) {
        p->rc = -ENOMEM;
        return;
    }
    // Blocks of unknown sites cannot be estimated.
    uint32_t first = p->profile.counts.sample_bytes ? 1 : 0;
    begin_heap(p, "libc.malloc", p->profile.now);
    for (uint32_t site = first; p->rc == 0 && site < n; site++) {
        struct perfetto_site *s = &p->sites[site];
        if (!raise_totals(p, site, s))
            continue;
        if (!s->defined)
            define_stack(p, site);
        s->defined = true;
        put_sample(p, site, s);
    }
    write_heap(p);
    p->from = p->profile.now;
}

// Writes a second heap with the blocks that were live at the peak. This heap must be the last,
// because the viewer computes the totals of each heap relative to the previous dump of the same
// stack.
static void write_peak(struct perfetto *p)
{
    p->from = 0;
    begin_heap(p, "malloc at its peak", p->profile.peak_at);
    for (uint32_t site = 0; p->rc == 0 && site < p->profile.counts.n_sites; site++) {
        const struct by_site_totals *t = &p->profile.counts.sites[site];
        const struct perfetto_site peak = {.allocated_bytes = t->peak_bytes,
                                           .allocations = t->peak_blocks};
        if (t->peak_blocks)
            put_sample(p, site, &peak);
    }
    write_heap(p);
}

static void put_clock(struct perfetto *p, struct buf *to, uint64_t id, uint64_t ns)
{
    put_u64(p, &p->message, CLOCK_ID, id);
    put_u64(p, &p->message, CLOCK_TIMESTAMP, ns);
    put_message(p, to, CLOCKS_CLOCK, &p->message);
}

// Writes the clocks, which start when the process starts, and the command line.
static void write_head(struct perfetto *p)
{
    const struct workload_header *h = p->profile.header;
    struct buf clocks = {0}, process = {0}, tree = {0};
    put_clock(p, &clocks, CLOCK_BOOTTIME_ID, 0);
    put_clock(p, &clocks, CLOCK_MONOTONIC_COARSE_ID, 0);
    if (p->profile.x->facts.realtime_ns)
        put_clock(p, &clocks, CLOCK_REALTIME_ID, p->profile.x->facts.realtime_ns);
    put_u64(p, &p->packet, PACKET_SEQUENCE_ID, SEQUENCE);
    put_message(p, &p->packet, PACKET_CLOCK_SNAPSHOT, &clocks);
    write_packet(p);
    put_u64(p, &process, PROCESS_PID, h->pid);
    for (size_t at = 0, n; at < h->argv_bytes; at += n + 1) {
        n = strnlen(h->argv + at, h->argv_bytes - at);
        put_bytes(p, &process, PROCESS_ARGUMENT, h->argv + at, n);
    }
    put_message(p, &tree, TREE_PROCESS, &process);
    put_u64(p, &p->packet, PACKET_SEQUENCE_ID, SEQUENCE);
    put_message(p, &p->packet, PACKET_PROCESS_TREE, &tree);
    write_packet(p);
    buf_release(&clocks);
    buf_release(&process);
    buf_release(&tree);
}

// Returns the time of the last op, as heap_profile.now.
static uint64_t end_of(const struct heap_profile *p)
{
    return p->x->facts.has_stamps ? heap_profile_ns(p, p->summary.last_stamp) : p->summary.events;
}

static int write_dumps(struct perfetto *p)
{
    uint64_t step = end_of(&p->profile) / DUMPS + 1, next = step;
    int rc = 0;
    write_head(p);
    while (p->rc == 0 && (rc = heap_profile_next(&p->profile)) > 0) {
        if (p->profile.now < next)
            continue;
        write_dump(p);
        next = (p->profile.now / step + 1) * step;
    }
    if (rc == 0) {
        write_dump(p);
        heap_profile_finish(&p->profile);
        write_peak(p);
    }
    return rc < 0 ? rc : p->rc < 0 ? export_no_memory(p->profile.x) : 0;
}

static void release_perfetto(struct perfetto *p)
{
    heap_profile_release(&p->profile);
    intern_release(&p->functions);
    intern_release(&p->files);
    map_release(&p->frames);
    free(p->mappings);
    free(p->sites);
    buf_release(&p->interned);
    buf_release(&p->packet);
    buf_release(&p->heap);
    buf_release(&p->message);
}

static int write_perfetto(struct export *x, struct workload_reader *r)
{
    struct perfetto p = {0};
    int rc = heap_profile_open(&p.profile, x, r);
    p.mappings = calloc(p.profile.sites.n_modules + 2, sizeof *p.mappings);
    if (rc == 0 && !p.mappings)
        rc = export_no_memory(x);
    rc = rc < 0 ? rc : write_dumps(&p);
    release_perfetto(&p);
    return rc;
}

const struct format format_perfetto = {
    .name = "perfetto",
    .export =
        {
            .holds = FORMAT_HOLDS_STAMPS,
            .profile = write_perfetto,
        },
};
