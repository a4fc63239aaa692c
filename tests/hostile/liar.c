// liar LIE FILE: writes a workload of 80,000 ops in two frames with correct checksums and one false
// statement.
#include "base/bytes.h"
#include "workload/format.h"
#include "workload/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS = 40000, NO_SUCH_SITE = 4000000000u };

static struct err e;

static void need(int rc)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "liar: %s\n", e.text);
    exit(1);
}

static void put(struct workload_output *to, uint32_t thread, struct workload_op op)
{
    static uint64_t stamp;
    op.stamp = ++stamp;
    need(workload_output_op(to, thread, &op, &e));
}

static struct workload_op call(unsigned kind, uint32_t slot)
{
    return (struct workload_op){.kind = (uint8_t)kind, .slot = slot, .size = 8};
}

static void put_ops(struct workload_output *to, const char *lie)
{
    static const struct workload_dependency first = {0, 0};
    struct workload_op remote = call(HT_FREE, 0), sited = call(HT_MALLOC, 1);
    put(to, 0, call(HT_MALLOC, 0));
    if (strcmp(lie, "race") != 0) {
        remote.dependencies = &first;
        remote.n_dependencies = 1;
    }
    put(to, 1, remote);
    sited.value = strcmp(lie, "site") == 0 ? NO_SUCH_SITE : 0;
    put(to, 0, sited);
    put(to, 0, call(HT_FREE, 1));
    for (int i = 0; i < PAIRS; i++) {
        put(to, 0, call(HT_MALLOC, 2));
        if (i == 0 && strcmp(lie, "twice") == 0)
            put(to, 0, call(HT_MALLOC, 2));
        put(to, 0, call(HT_FREE, 2));
        if (i == 0 && strcmp(lie, "freed") == 0)
            put(to, 0, call(HT_FREE, 2));
    }
}

// Writes the file's INDEX again, with one op fewer in the entry of the first frame.
static void lie_in_index(const char *path)
{
    struct input in;
    struct output out;
    struct frame_reader frames;
    struct frame_writer writer;
    struct frame f;
    struct format_index index = {0};
    struct buf bytes = {0}, payload = {0};
    uint8_t trailer[FORMAT_TRAILER_BYTES];
    need(input_open(&in, path, &e));
    frame_reader_init(&frames, &in, FRAME_MAGIC_WORKLOAD, WORKLOAD_VERSION);
    while (frame_next(&frames, &f, &e) > 0 && f.type != FORMAT_INDEX)
        continue;
    need(format_get_index(f.data, f.size, &index));
    need(buf_reserve(&bytes, f.offset));
    need(input_seek(&in, 0, &e));
    need((int)input_read(&in, bytes.data, f.offset, &e));
    need(output_open(&out, path, OUTPUT_FORCE, &e));
    need(output_write(&out, bytes.data, f.offset, &e));
    index.entries[0].n_ops--;
    need(format_put_index(&payload, &index));
    frame_writer_init(&writer, &out, FRAME_MAGIC_WORKLOAD, WORKLOAD_VERSION, FRAME_CODEC_NONE, 0);
    writer.next_sequence = f.sequence;
    put_u64(trailer, f.offset);
    put_u64(trailer + 8, FORMAT_TRAILER_MAGIC);
    need(frame_write(&writer, FORMAT_INDEX, payload.data, payload.size, &e));
    need(output_write(&out, trailer, sizeof trailer, &e));
    need(output_close(&out, true, &e));
    frame_writer_release(&writer);
    frame_reader_release(&frames);
    input_close(&in);
    free(index.entries);
    buf_release(&bytes);
    buf_release(&payload);
}

int main(int argc, char **argv)
{
    struct output out;
    struct workload_output to = {0};
    const struct workload_header h = {.clock_hz = 1000000000, .has_stamps = true, .pid = 1};
    if (argc != 3)
        return 2;
    need(output_open(&out, argv[2], OUTPUT_FORCE, &e));
    need(workload_output_begin(&to, &out, 1, &h, &e));
    put_ops(&to, argv[1]);
    struct workload_summary s = workload_output_summary(&to);
    if (strcmp(argv[1], "summary") == 0)
        s.threads = 1;
    need(workload_write_end(to.writer, &s, &e));
    workload_output_release(&to);
    need(output_close(&out, true, &e));
    if (strcmp(argv[1], "index") == 0)
        lie_in_index(argv[2]);
    return 0;
}
