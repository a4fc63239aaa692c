#include "formats/ctf_metadata.h"

#include "base/bytes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define MAGIC 0xc1fc1fc1u

// The fields that an event may have, in the order in which it has them. Readers strip the first underscore, which keeps
// names apart from the words of the language.
static const struct {
    unsigned field; // HT_F_*
    const char *declaration;
} fields[] = {
    {HT_F_PTR, "address_t _ptr"},    {HT_F_SIZE, "uint64_t _size"},      {HT_F_COUNT, "uint64_t _count"},
    {HT_F_ALIGN, "uint64_t _align"}, {HT_F_RESULT, "address_t _result"}, {HT_F_VALUE, "int64_t _value"},
};

static const char head[] = "/* CTF 1.8 */\n"
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

static const char stream[] =
    "};\n"
    "\n"
    "typealias integer { size = 64; align = 8; signed = false; map = clock.recording.value; } := stamp_t;\n"
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

static void put_event(FILE *to, unsigned kind)
{
    fprintf(to, "\nevent {\n\tname = \"%s\";\n\tid = %u;\n\tstream_id = 0;\n\tfields := struct {\n",
            event_infos[kind].name, kind);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (event_infos[kind].fields & fields[i].field)
            fprintf(to, "\t\t%s;\n", fields[i].declaration);
    }
    if (has_error(kind))
        fprintf(to, "\t\tuint8_t _error;\n");
    if (event_infos[kind].fields & HT_F_TEXT)
        fprintf(to, "\t\tstring _text;\n");
    fprintf(to, "\t};\n};\n");
}

int ctf_metadata(struct buf *to, uint64_t realtime_ns)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f)
        return -ENOMEM;
    fputs(head, f);
    if (realtime_ns)
        fprintf(f, "\toffset_s = %llu;\n\toffset = %llu;\n", (unsigned long long)(realtime_ns / 1000000000),
                (unsigned long long)(realtime_ns % 1000000000));
    fputs(stream, f);
    for (unsigned kind = 1; kind < HT_KIND_LIMIT; kind++) {
        if (event_infos[kind].name && (event_counts(kind) || kind == HT_PREEXISTING))
            put_event(f, kind);
    }
    int rc = fclose(f) != 0 || !text ? -ENOMEM : buf_put(to, text, n);
    free(text);
    return rc;
}

void ctf_packet_header(uint8_t *to, const struct ctf_packet *p)
{
    put_u32(to, MAGIC);
    put_u32(to + 4, 0); // stream_id
    put_u64(to + 8, p->begin_ns);
    put_u64(to + 16, p->end_ns);
    put_u64(to + 24, p->bytes * 8); // content_size and packet_size are in bits
    put_u64(to + 32, p->bytes * 8);
    put_u32(to + 40, p->pid);
    put_u32(to + 44, p->tid);
}

size_t ctf_event(uint8_t *to, const struct event *ev)
{
    unsigned has = event_infos[ev->kind].fields;
    const uint64_t values[] = {ev->ptr, ev->size, ev->count, ev->align, ev->result, ev->value};
    uint8_t *at = to;
    *at++ = ev->kind;
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
    if (!(has & HT_F_TEXT))
        return (size_t)(at - to);
    // A string ends with its first NUL.
    size_t n = ev->text_bytes ? strnlen(ev->text, ev->text_bytes < 1024 ? ev->text_bytes : 1024) : 0;
    if (n)
        memcpy(at, ev->text, n);
    at[n] = 0;
    return (size_t)(at + n + 1 - to);
}
