// newer PART IN OUT: rewrites the trace, workload or aggregate IN as a later version of heaptape,
// 99.0.0, might write it. PART:
//   kind         an event of kind 25, in its one-word form
//   long         an event of kind 200, in the long form
//   transform    events in transform 3
//   clock        a clock of kind 3
//   flag         ops with another flag
//   count        a summary that counts an event of kind 25
//   field, frame a field and a frame of types that do not exist yet
//   nonsense     records that no version knows
#include "base/bytes.h"
#include "base/frame.h"
#include "base/tlv.h"
#include "base/varint.h"
#include "record/aggregate/format.h"
#include "trace/columns.h"
#include "workload/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NEW_KIND = 25, NEW_LONG_KIND = 200, NEW_TAG = 120, NEW_FRAME = 77 };

static struct err e;
static struct buf payload;

static void need(int rc)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "newer: %s\n", e.text);
    exit(1);
}

// Changes the first free record, or the first LONG record. Returns false if the frame contains no
// such record.
static bool change_words(uint8_t *at, size_t n, unsigned tag, uint8_t kind)
{
    for (size_t i = 0; i + 8 <= n; i += 8 * codec_record_words(get_u64(at + i))) {
        uint64_t word = get_u64(at + i);
        if (codec_tag_of(word) != tag)
            continue;
        if (tag == CODEC_TAG_LONG)
            word = (word & ~(0xffull << CODEC_LONG_KIND_AT)) | (uint64_t)kind << CODEC_LONG_KIND_AT;
        else
            word = (word & ~codec_mask(CODEC_TAG_BITS)) | kind;
        put_u64(at + i, word);
        return true;
    }
    return false;
}

static bool change_columns(uint8_t *at, size_t n, unsigned tag, uint8_t kind)
{
    uint32_t tags = get_u32(at), words = get_u32(at + 4 * COLUMN_WORDS), before = 0;
    uint8_t *tag_column = at + 4 * COLUMN_COUNT, *word_column = at + n - words;
    for (uint32_t i = 0; i < tags; i++) {
        uint8_t found = codec_tag_of(tag_column[i]), flag = tag_column[i] - found;
        if (found == tag && tag == CODEC_TAG_LONG)
            word_column[8 * before] = kind;
        else if (found == tag)
            tag_column[i] = kind | flag;
        if (found == tag)
            return true;
        before += found < HT_MALLOC || found >= HT_FIRST_NOTE;
    }
    return false;
}

static bool change_events(const char *part)
{
    uint8_t *p = payload.data;
    size_t head = EVENTS_HEADER_BYTES + (size_t)get_u32(p + 20) * EVENTS_SEGMENT_BYTES;
    bool is_long = strcmp(part, "long") == 0, nonsense = strcmp(part, "nonsense") == 0;
    unsigned tag = is_long ? CODEC_TAG_LONG : HT_FREE;
    uint8_t kind = is_long ? NEW_LONG_KIND : nonsense ? HT_MEMALIGN : NEW_KIND;
    bool in_words = (get_u32(p + 16) >> EVENTS_TRANSFORM_AT & 0xff) == EVENTS_WORDS;
    if (strcmp(part, "transform") == 0)
        p[17] = EVENTS_COLUMNS + 1;
    if (strcmp(part, "kind") == 0 || is_long || nonsense)
        return (in_words ? change_words : change_columns)(p + head, payload.size - head, tag, kind);
    return true;
}

static bool change_trace(const struct frame *f, const char *part)
{
    // Changes the value of the first field.
    if (f->type == TRACE_SESSION && strcmp(part, "clock") == 0)
        payload.data[2] = CLOCK_KIND_CNTVCT + 1;
    if (f->type == TRACE_SESSION)
        need(tlv_put_string(&payload, TRACE_F_HEAPTAPE, "99.0.0"));
    if (f->type == TRACE_SESSION && strcmp(part, "field") == 0)
        need(tlv_put_u64(&payload, NEW_TAG, 1));
    return f->type == TRACE_EVENTS && change_events(part);
}

// New offsets of the frames by their old offsets, for the summary and the index of a workload.
static struct moved_frame {
    uint64_t from, to;
} moved[1000];
static size_t n_moved;

static uint64_t moved_to(uint64_t from)
{
    for (size_t i = 0; i < n_moved; i++) {
        if (moved[i].from == from)
            return moved[i].to;
    }
    return 0;
}

static void move_summary(void)
{
    struct workload_summary s = {0};
    need(format_get_summary(payload.data, payload.size, &s));
    s.samples_at = moved_to(s.samples_at);
    s.sites_at = moved_to(s.sites_at);
    s.residency_at = moved_to(s.residency_at);
    s.residency_steps_at = moved_to(s.residency_steps_at);
    payload.size = 0;
    need(format_put_summary(&payload, &s));
}

static void move_index(void)
{
    struct format_index x = {0};
    need(format_get_index(payload.data, payload.size, &x));
    x.summary_offset = moved_to(x.summary_offset);
    for (size_t i = 0; i < x.n; i++)
        x.entries[i].offset = moved_to(x.entries[i].offset);
    payload.size = 0;
    need(format_put_index(&payload, &x));
    free(x.entries);
}

static void write_trailer(struct output *out)
{
    uint8_t trailer[FORMAT_TRAILER_BYTES];
    put_u64(trailer, moved[n_moved - 1].to);
    put_u64(trailer + 8, FORMAT_TRAILER_MAGIC);
    need(output_write(out, trailer, sizeof trailer, &e));
}

static bool change_workload(const struct frame *f, const char *part)
{
    if (f->type == FORMAT_HEADER)
        need(tlv_put_string(&payload, FORMAT_F_HEAPTAPE, "99.0.0"));
    if (f->type == FORMAT_SUMMARY)
        move_summary();
    if (f->type == FORMAT_INDEX)
        move_index();
    if (f->type != FORMAT_OPS)
        return false;
    if (strcmp(part, "kind") == 0)
        payload.data[FORMAT_HEAD_BYTES] = NEW_KIND;
    if (strcmp(part, "flag") == 0)
        put_u32(payload.data + FORMAT_AT_FLAGS, 2);
    if (strcmp(part, "nonsense") == 0)
        put_u32(payload.data + FORMAT_AT_SLOT_LIMIT, UINT32_MAX);
    return true;
}

static bool change_aggregate(const struct frame *f, const char *part)
{
    uint8_t counts[] = {NEW_KIND, 1};
    if (f->type == AGGREGATE_SESSION)
        change_trace(&(struct frame){.type = TRACE_SESSION}, part);
    if (f->type == AGGREGATE_SUMMARY && strcmp(part, "count") == 0)
        need(tlv_put_bytes(&payload, FORMAT_F_BY_KIND, counts, sizeof counts));
    if (f->type == AGGREGATE_TOTALS && strcmp(part, "nonsense") == 0)
        payload.size--;
    return f->type == AGGREGATE_TOTALS;
}

static bool change(uint32_t magic, const struct frame *f, const char *part)
{
    return magic == FRAME_MAGIC_TRACE      ? change_trace(f, part)
           : magic == FRAME_MAGIC_WORKLOAD ? change_workload(f, part)
                                           : change_aggregate(f, part);
}

int main(int argc, char **argv)
{
    struct input in;
    struct output out;
    struct frame_reader reader;
    struct frame_writer writer;
    struct frame f;
    const uint8_t *first;
    bool changed = false;
    if (argc != 4)
        return 2;
    need(input_open(&in, argv[2], &e));
    need((int)input_peek(&in, 4, &first, &e));
    uint32_t magic = get_u32(first);
    need(output_open(&out, argv[3], OUTPUT_FORCE, &e));
    frame_reader_init(&reader, &in, magic, 1);
    frame_writer_init(&writer, &out, magic, 1, FRAME_CODEC_NONE, 0);
    while (frame_next(&reader, &f, &e) > 0) {
        payload.size = 0;
        need(buf_put(&payload, f.data, f.size));
        need(n_moved < sizeof moved / sizeof *moved ? 0 : -1);
        moved[n_moved++] = (struct moved_frame){f.offset, out.offset};
        changed = change(magic, &f, changed ? "" : argv[1]) || changed;
        need(frame_write(&writer, f.type, payload.data, payload.size, &e));
        if (f.sequence == 0 && strcmp(argv[1], "frame") == 0)
            need(frame_write(&writer, NEW_FRAME, "new", 3, &e));
    }
    if (magic == FRAME_MAGIC_WORKLOAD)
        write_trailer(&out);
    need(output_close(&out, true, &e));
    frame_writer_release(&writer);
    frame_reader_release(&reader);
    input_close(&in);
    buf_release(&payload);
    return !changed;
}
