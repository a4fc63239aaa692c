// The Common Trace Format, version 1.8 (diamon.org/ctf), which babeltrace2 and Trace Compass read.
// The output is a directory with a text file `metadata` and one binary stream per thread. Integers
// are little-endian and byte-aligned.
#include "base/buf.h"
#include "base/bytes.h"
#include "base/map.h"
#include "formats/export.h"
#include "trace/codec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum {
    CTF_PACKET_HEADER_BYTES = 4 + 4 + 8 * 4 + 4 * 2,
    // Maximum size of an event, which may contain the longest text in a trace.
    CTF_EVENT_MAX_BYTES = 1 + 8 + 6 * 8 + 1 + 4 + CODEC_MAX_TEXT_BYTES + 8,
    FRAME_BYTES = 8,
    WITH_SITE = 128,        // bit of an event class id, set for events that have a call site
    PACKET_BYTES = 1 << 15, // a packet is written when it reaches this size
    // All packets are written when their total reaches this size. Otherwise, if many threads were
    // rarely active, their packets would use too much memory.
    PENDING_BYTES = 1 << 25,
};

#define MAGIC 0xc1fc1fc1u

// All fields that an event may have, in order. Readers strip the first underscore, which prevents
// conflicts with keywords.
static const struct {
    unsigned field; // HT_F_*
    const char *declaration;
} fields[] = {
    {HT_F_PTR, "address_t _ptr"},       {HT_F_SIZE, "uint64_t _size"},
    {HT_F_COUNT, "uint64_t _count"},    {HT_F_ALIGN, "uint64_t _align"},
    {HT_F_RESULT, "address_t _result"}, {HT_F_VALUE, "int64_t _value"},
};

static const char head[] =
    "/* CTF 1.8 */\n"
    "\n"
    "typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
    "typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
    "typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n"
    "typealias integer { size = 64; align = 8; signed = true; } := int64_t;\n"
    "typealias integer { size = 64; align = 8; signed = false; base = 16; } := address_t;\n"
    "\n"
    "trace {\n"
    "\tmajor = 1;\n"
    "\tminor = 8;\n"
    "\tbyte_order = le;\n"
    "\tpacket.header := struct {\n"
    "\t\tuint32_t magic;\n"
    "\t\tuint32_t stream_id;\n"
    "\t};\n"
    "};\n"
    "\n"
    "env {\n"
    "\ttracer_name = \"heaptape\";\n"
    "};\n"
    "\n"
    "clock {\n"
    "\tname = \"recording\";\n"
    "\tdescription = \"nanoseconds since the recording began\";\n"
    "\tfreq = 1000000000;\n";

static const char declarations[] = "};\n"
                                   "\n"
                                   "typealias integer { size = 64; align = 8; signed = false; map "
                                   "= clock.recording.value; } := stamp_t;\n"
                                   "\n"
                                   "stream {\n"
                                   "\tid = 0;\n"
                                   "\tpacket.context := struct {\n"
                                   "\t\tstamp_t timestamp_begin;\n"
                                   "\t\tstamp_t timestamp_end;\n"
                                   "\t\tuint64_t content_size;\n"
                                   "\t\tuint64_t packet_size;\n"
                                   "\t\tuint32_t pid;\n"
                                   "\t\tuint32_t tid;\n"
                                   "\t};\n"
                                   "\tevent.header := struct {\n"
                                   "\t\tuint8_t id;\n"
                                   "\t\tstamp_t timestamp;\n"
                                   "\t};\n"
                                   "};\n";

static bool has_error(unsigned kind)
{
    return event_infos[kind].fields & HT_F_RESULT;
}

static void put_declaration(FILE *to, unsigned kind, bool with_site)
{
    fprintf(to, "\nevent {\n\tname = \"%s\";\n\tid = %u;\n\tstream_id = 0;\n\tfields := struct {\n",
            event_infos[kind].name, kind | (with_site ? WITH_SITE : 0));
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (!(event_infos[kind].fields & fields[i].field))
            continue;
        if (event_defines_sites(kind) && fields[i].field != HT_F_PTR)
            fprintf(to, "\t\tuint64_t _%s;\n", event_argument(kind, fields[i].field).name);
        else
            fprintf(to, "\t\t%s;\n", fields[i].declaration);
    }
    if (has_error(kind))
        fprintf(to, "\t\tuint8_t _error;\n");
    if (with_site)
        fprintf(to, "\t\tuint64_t _site;\n");
    if (event_has_frames(kind))
        fprintf(to, "\t\tuint32_t _n;\n\t\taddress_t _frames[_n];\n");
    else if (event_infos[kind].fields & HT_F_TEXT)
        fprintf(to, "\t\tstring _text;\n");
    fprintf(to, "\t};\n};\n");
}

// Appends the metadata. `realtime_ns` is CLOCK_REALTIME at stamp 0, or 0 if unknown. Returns 0 or
// -ENOMEM.
static int put_metadata(struct buf *to, uint64_t realtime_ns)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f)
        return -ENOMEM;
    fputs(head, f);
    if (realtime_ns)
        fprintf(f, "\toffset_s = %llu;\n\toffset = %llu;\n",
                (unsigned long long)(realtime_ns / 1000000000),
                (unsigned long long)(realtime_ns % 1000000000));
    fputs(declarations, f);
    for (unsigned kind = 1; kind < HT_KIND_LIMIT; kind++) {
        if (!event_infos[kind].name ||
            !(event_counts(kind) || kind == HT_PREEXISTING || event_defines_sites(kind)) ||
            kind == HT_FRAMES)
            continue;
        put_declaration(f, kind, false);
        if (has_error(kind))
            put_declaration(f, kind, true);
    }
    int rc = fclose(f) != 0 || !text ? -ENOMEM : buf_put(to, text, n);
    free(text);
    return rc;
}

// Writes either an array of addresses or a string, which ends at the first NUL.
static uint8_t *put_text(uint8_t *at, const struct event *ev)
{
    size_t n = ev->text_bytes < CODEC_MAX_TEXT_BYTES ? ev->text_bytes : CODEC_MAX_TEXT_BYTES;
    if (event_has_frames(ev->kind)) {
        put_u32(at, (uint32_t)(n / FRAME_BYTES));
        memcpy(at + 4, ev->text, n / FRAME_BYTES * FRAME_BYTES);
        return at + 4 + n / FRAME_BYTES * FRAME_BYTES;
    }
    n = n ? strnlen(ev->text, n) : 0;
    if (n)
        memcpy(at, ev->text, n);
    at[n] = 0;
    return at + n + 1;
}

// Writes an event, whose stamp must be in ns. Returns its size, at most CTF_EVENT_MAX_BYTES.
static size_t put_event(uint8_t *to, const struct event *ev)
{
    unsigned has = event_infos[ev->kind].fields;
    const uint64_t values[] = {ev->ptr, ev->size, ev->count, ev->align, ev->result, ev->value};
    uint64_t site = has_error(ev->kind) ? ev->notes[HT_NOTE_SITE] : 0;
    uint8_t *at = to;
    *at++ = ev->kind | (site ? WITH_SITE : 0);
    put_u64(at, ev->stamp);
    at += 8;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (!(has & fields[i].field))
            continue;
        put_u64(at, values[i]);
        at += 8;
    }
    if (has_error(ev->kind))
        *at++ = ev->error;
    if (site) {
        put_u64(at, site);
        at += 8;
    }
    return (size_t)((has & HT_F_TEXT ? put_text(at, ev) : at) - to);
}

struct ctf_stream {
    uint32_t pid, thread, tid;
    uint64_t begin_ns, last_ns;
    uint64_t bytes;    // current size of its file
    struct buf packet; // current packet including its header; empty if no packet has been started
};

struct ctf {
    struct map by_thread; // Maps a process and a thread to the stream's index in `streams` plus 1.
    struct ctf_stream *streams;
    size_t n, capacity;
    size_t pending; // total size of the packets
};

static int open_in(struct export *x, const char *name, int flags)
{
    char *path;
    if (asprintf(&path, "%s/%s", x->folder, name) < 0)
        return err_no_memory(x->e, x->folder);
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | flags, 0600);
    int rc =
        fd < 0 ? err_set_errno(x->e, "%s: cannot %s", path, flags & O_CREAT ? "create" : "continue")
               : fd;
    free(path);
    return rc;
}

// Appends to a file whose size is `bytes`, creating the file if `bytes` is 0.
static int write_to(struct export *x, const char *name, uint64_t bytes, const struct buf *more)
{
    struct stat st;
    int fd = open_in(x, name, bytes ? 0 : O_CREAT | O_EXCL);
    if (fd < 0)
        return fd;
    struct output out = {.fd = fd, .owns_fd = true, .name = name};
    int rc =
        fstat(fd, &st) == 0 && (uint64_t)st.st_size == bytes
            ? output_write(&out, more->data, more->size, x->e)
            : err_set(x->e, -ESTALE, "%s/%s: was changed while it was written", x->folder, name);
    int closed = output_close(&out, true, x->e);
    return rc < 0 ? rc : closed;
}

static int begin_ctf(struct export *x)
{
    struct buf text = {0};
    int rc = put_metadata(&text, x->facts.realtime_ns);
    if (rc == 0)
        rc = write_to(x, "metadata", 0, &text);
    else
        rc = err_no_memory(x->e, x->folder);
    buf_release(&text);
    return rc;
}

// Returns the thread's stream, or NULL when out of memory.
static struct ctf_stream *get_stream(struct ctf *f, const struct export_call *c)
{
    uint64_t key = (uint64_t)c->pid << 32 | c->thread;
    size_t had = f->n;
    struct ctf_stream *s = MAP_ITEM(&f->by_thread, key, &f->streams, &f->n, &f->capacity);
    if (s && f->n > had)
        *s = (struct ctf_stream){.pid = c->pid, .thread = c->thread, .tid = c->tid};
    return s;
}

// Writes the header of the stream's packet.
static void put_packet_header(const struct ctf_stream *s)
{
    uint8_t *to = s->packet.data;
    put_u32(to, MAGIC);
    put_u32(to + 4, 0); // stream_id
    put_u64(to + 8, s->begin_ns);
    put_u64(to + 16, s->last_ns);
    put_u64(to + 24, s->packet.size * 8); // content_size and packet_size are in bits
    put_u64(to + 32, s->packet.size * 8);
    put_u32(to + 40, s->pid);
    put_u32(to + 44, s->tid);
}

static void name_stream(const struct ctf_stream *s, char name[static 64])
{
    snprintf(name, 64, "stream_%u_%u", s->pid, s->thread);
}

// Writes a packet. The stream's file is open only during the write, because a process may have more
// threads than file descriptors.
static int write_packet(struct export *x, struct ctf_stream *s)
{
    struct ctf *f = x->state;
    char name[64];
    if (!s->packet.size)
        return 0;
    put_packet_header(s);
    name_stream(s, name);
    int rc = write_to(x, name, s->bytes, &s->packet);
    s->bytes += s->packet.size;
    f->pending -= s->packet.size;
    s->packet.size = 0;
    return rc;
}

static int write_all(struct export *x)
{
    struct ctf *f = x->state;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < f->n; i++) {
        rc = write_packet(x, &f->streams[i]);
        buf_release(&f->streams[i].packet);
    }
    return rc;
}

// Writes the last packets and checks that every file has the expected size.
static int end_ctf(struct export *x)
{
    struct ctf *f = x->state;
    char name[64];
    const struct buf nothing = {0};
    int rc = write_all(x);
    for (size_t i = 0; rc == 0 && i < f->n; i++) {
        name_stream(&f->streams[i], name);
        rc = f->streams[i].bytes ? write_to(x, name, f->streams[i].bytes, &nothing) : 0;
    }
    return rc;
}

static int put_ctf(struct export *x, const struct export_call *c);

// Writes one frame event per stack frame, with the call site's number. The number is a hash of the
// addresses, which a CTF reader could not compute.
static int put_frames(struct export *x, const struct export_call *c)
{
    struct export_call frame = *c;
    int rc = 0;
    frame.ev = (struct event){.kind = HT_FRAME, .stamp = c->ev.stamp, .value = c->ev.size};
    for (uint32_t i = c->ev.text_bytes / FRAME_BYTES; rc == 0 && i-- > 0;) {
        frame.ev.size = frame.ev.value;
        frame.ev.ptr = get_u64((const uint8_t *)c->ev.text + (size_t)i * FRAME_BYTES);
        frame.ev.value = codec_site(frame.ev.size, frame.ev.ptr);
        rc = put_ctf(x, &frame);
    }
    return rc;
}

static int put_ctf(struct export *x, const struct export_call *c)
{
    struct ctf *f = x->state;
    struct ctf_stream *s = get_stream(f, c);
    struct event ev = c->ev;
    if (ev.kind == HT_FRAMES)
        return put_frames(x, c);
    if (!s)
        return err_no_memory(x->e, x->folder);
    ev.ptr = event_defines_sites(ev.kind) ? ev.ptr : export_address(x, ev.ptr);
    ev.result = export_address(x, ev.result);
    // Stamps must not decrease within a stream.
    s->last_ns = ev.stamp > s->last_ns ? ev.stamp : s->last_ns;
    ev.stamp = s->last_ns;
    size_t had = s->packet.size;
    s->begin_ns = had ? s->begin_ns : s->last_ns;
    if ((!had && buf_resize(&s->packet, CTF_PACKET_HEADER_BYTES) < 0) ||
        buf_reserve(&s->packet, CTF_EVENT_MAX_BYTES) < 0)
        return err_no_memory(x->e, x->folder);
    s->packet.size += put_event(s->packet.data + s->packet.size, &ev);
    f->pending += s->packet.size - had;
    int rc = 0;
    if (s->packet.size >= PACKET_BYTES || ev.kind == HT_THREAD_END)
        rc = write_packet(x, s);
    if (ev.kind == HT_THREAD_END)
        buf_release(&s->packet);
    return rc == 0 && f->pending > PENDING_BYTES ? write_all(x) : rc;
}

static void release_ctf(void *state)
{
    struct ctf *f = state;
    for (size_t i = 0; i < f->n; i++)
        buf_release(&f->streams[i].packet);
    free(f->streams);
    map_release(&f->by_thread);
}

const struct format format_ctf = {
    .name = "ctf",
    .export =
        {
            .holds = FORMAT_HOLDS_STAMPS | FORMAT_HOLDS_PIDS | FORMAT_HOLDS_TIDS |
                     FORMAT_HOLDS_FAILED | FORMAT_HOLDS_FREED | FORMAT_HOLDS_NULL |
                     FORMAT_HOLDS_ADDRESSES,
            .notes = 1u << HT_NOTE_SITE,
            .folder = true,
            .state_bytes = sizeof(struct ctf),
            .begin = begin_ctf,
            .put = put_ctf,
            .end = end_ctf,
            .release = release_ctf,
        },
};
