// Decodes payloads that have correct checksums but wrong contents. The decoder must either reject a
// payload or return a valid piece of a workload, without reading out of bounds or allocating too
// much.
#include "base/bytes.h"
#include "workload/decode.h"
#include "workload/encode.h"
#include "workload/file.h"
#include "workload/writer.h"

#include "unit.h"

#include <errno.h>
#include <string.h>

static uint64_t state;

static uint64_t pick(uint64_t below)
{
    return unit_random(&state) % below;
}

static void add(struct encode *x, uint32_t thread, struct workload_op op)
{
    assert_int_equal(encode_op(x, thread, &op), 0);
}

// Encodes a frame that contains every kind of content.
static void fill(struct encode *x, bool has_stamps)
{
    static const struct workload_dependency wait = {0, 1};
    uint64_t stamp = 100;
    encode_init(x);
    x->has_stamps = has_stamps;
    for (uint32_t i = 0; i < 40; i++)
        add(x, 0,
            (struct workload_op){
                .kind = HT_MALLOC, .stamp = stamp++, .size = i * i * i, .slot = i});
    add(x, 0,
        (struct workload_op){
            .kind = HT_THREAD_CREATE, .stamp = stamp++, .value = 1, .slot = WORKLOAD_NO_SLOT});
    add(x, 1,
        (struct workload_op){.kind = HT_FREE,
                             .stamp = stamp++,
                             .slot = 7,
                             .dependencies = &wait,
                             .n_dependencies = 1});
    add(x, 1,
        (struct workload_op){
            .kind = HT_CALLOC, .stamp = stamp++, .slot = 7, .size = 3, .count = 1000});
    add(x, 0,
        (struct workload_op){
            .kind = HT_REALLOC, .stamp = stamp++, .slot = 8, .flags = WORKLOAD_MOVED});
    add(x, 0,
        (struct workload_op){.kind = HT_MARK,
                             .stamp = stamp++,
                             .slot = WORKLOAD_NO_SLOT,
                             .text = "here",
                             .text_bytes = 4});
    for (uint32_t i = 10; i < 30; i++)
        add(x, i & 1, (struct workload_op){.kind = HT_FREE, .stamp = stamp += 1000, .slot = i});
}

static void check_ops(const struct decode *d)
{
    size_t n = 0;
    for (size_t r = 0; r < d->n_runs; r++) {
        n += d->runs[r].n_ops;
        assert_true(d->runs[r].thread < d->n_threads);
        for (size_t i = 0; i < d->runs[r].n_ops; i++) {
            const struct workload_op *op = &d->runs[r].ops[i];
            assert_non_null(event_infos[op->kind].name);
            assert_true(op->slot == WORKLOAD_NO_SLOT || op->slot < d->slot_limit);
            assert_true(i == 0 || op->stamp >= op[-1].stamp);
            for (uint32_t k = 0; k < op->n_dependencies; k++)
                assert_true(op->dependencies[k].thread < d->n_threads &&
                            op->dependencies[k].thread != d->runs[r].thread);
            for (uint32_t k = 0; k < op->text_bytes; k++)
                state += (unsigned char)op->text[k];
        }
    }
    assert_int_equal(n, d->n_ops);
}

static void decode_one(const uint8_t *bytes, size_t n, bool has_stamps, size_t *accepted)
{
    struct decode d = {.has_stamps = has_stamps};
    const char *what = NULL;
    // The buffer has the exact size, so that AddressSanitizer detects overreads.
    uint8_t *copy = malloc(n ? n : 1);
    memcpy(copy, bytes, n);
    int rc = decode_frame(&d, copy, n, &what);
    if (rc == 0) {
        check_ops(&d);
        ++*accepted;
    } else {
        assert_true(rc == -EBADMSG || rc == -EPROTO);
        assert_true(what || (rc == -EPROTO && event_is_unknown(d.unknown_kind)));
    }
    decode_release(&d);
    free(copy);
}

static void mutate(uint8_t *bytes, size_t n)
{
    static const uint8_t odd[] = {0, 1, 0x7f, 0x80, 0xfe, 0xff};
    for (uint64_t i = 1 + pick(3); i-- > 0;) {
        // Changes in the head affect most of the frame.
        size_t at = pick(2) ? pick(FORMAT_HEAD_BYTES + 24) : pick(n);
        if (at >= n)
            continue;
        if (pick(2))
            bytes[at] ^= (uint8_t)(1u << pick(8));
        else
            bytes[at] = odd[pick(sizeof odd)];
    }
}

static void mutations(bool has_stamps)
{
    struct encode x;
    struct encode_frame f = {0};
    struct encode_payload p = {0};
    size_t accepted = 0, n;
    fill(&x, has_stamps);
    encode_end_frame(&x, &f);
    assert_int_equal(encode_pack(&f, &p), 0);
    n = p.bytes.size;
    decode_one(p.bytes.data, n, has_stamps, &accepted);
    assert_int_equal(accepted, 1);
    uint8_t *bytes = malloc(n);
    for (unsigned i = 0; i < 50000; i++) {
        memcpy(bytes, p.bytes.data, n);
        mutate(bytes, n);
        decode_one(bytes, n, has_stamps, &accepted);
    }
    // Many changes of sizes and slots stay valid; changes of counts do not.
    assert_true(accepted > 100 && accepted < 40000);
    accepted = 0;
    for (size_t cut = 0; cut < n; cut++)
        decode_one(p.bytes.data, cut, has_stamps, &accepted);
    assert_int_equal(accepted, 0);
    free(bytes);
    buf_release(&p.bytes);
    encode_frame_release(&f);
    encode_release(&x);
}

static void changed_bytes(void **unused)
{
    mutations(true);
    mutations(false);
    (void)unused;
}

static uint8_t *column_at(uint8_t *p, unsigned column)
{
    uint8_t *at = p + FORMAT_HEAD_BYTES + FORMAT_SHAPE_BYTES * get_u32(p + FORMAT_AT_SHAPES);
    for (unsigned c = 0; c < column; c++)
        at += get_u32(p + FORMAT_AT_COLUMNS + 8 * c) + get_u32(p + FORMAT_AT_COLUMNS + 8 * c + 4) +
              (c == FORMAT_COLUMN_BLOCKS ? get_u32(p + FORMAT_AT_OPS) : 0);
    return at;
}

// Decodes the payload and restores the changed byte. Returns the fault, or "".
static const char *decode_changed(struct encode_payload *p, uint8_t *at, uint8_t to)
{
    struct decode d = {.has_stamps = true};
    const char *what = "";
    uint8_t had = *at;
    *at = to;
    int rc = decode_frame(&d, p->bytes.data, p->bytes.size, &what);
    *at = had;
    decode_release(&d);
    assert_int_equal(rc, *what ? -EBADMSG : 0);
    return what;
}

// Like decode_changed, for a 32-bit field of the header that makes the payload invalid.
static const char *decode_count(struct encode_payload *p, size_t at, uint32_t to)
{
    struct decode d = {.has_stamps = true};
    const char *what = "";
    uint32_t had = get_u32(p->bytes.data + at);
    put_u32(p->bytes.data + at, to);
    assert_int_equal(decode_frame(&d, p->bytes.data, p->bytes.size, &what), -EBADMSG);
    put_u32(p->bytes.data + at, had);
    decode_release(&d);
    return what;
}

static void limits_and_dependencies(void **unused)
{
    static const struct workload_dependency wait = {0, 0};
    struct encode x;
    struct encode_frame f = {0};
    struct encode_payload p = {0};
    encode_init(&x);
    x.has_stamps = true;
    add(&x, 0, (struct workload_op){.kind = HT_MALLOC, .stamp = 5, .size = 8});
    add(&x, 1,
        (struct workload_op){
            .kind = HT_FREE, .stamp = 6, .dependencies = &wait, .n_dependencies = 1});
    encode_end_frame(&x, &f);
    assert_int_equal(encode_pack(&f, &p), 0);
    uint8_t *head = p.bytes.data, *blocks = column_at(head, FORMAT_COLUMN_BLOCKS),
            *dependency = column_at(head, FORMAT_COLUMN_DEPENDENCY),
            *used = column_at(head, FORMAT_COLUMN_USED);
    // Each block has at least one op.
    assert_string_equal(decode_changed(&p, head + FORMAT_AT_OPS, 0), "invalid counts");
    assert_string_equal(decode_changed(&p, head + FORMAT_AT_BLOCKS, 0), "invalid counts");
    assert_string_equal(decode_changed(&p, head + FORMAT_AT_BLOCKS, 3), "invalid counts");
    assert_string_equal(decode_changed(&p, head + FORMAT_AT_BLOCKS, head[FORMAT_AT_BLOCKS]), "");
    // These counts exceed the limits by one, or are the limits but do not match the columns.
    assert_string_equal(decode_count(&p, FORMAT_AT_OPS, FORMAT_MAX_OPS + 1), "invalid counts");
    assert_string_not_equal(decode_count(&p, FORMAT_AT_OPS, FORMAT_MAX_OPS), "invalid counts");
    uint32_t waits = FORMAT_AT_COLUMNS + 8 * FORMAT_COLUMN_DEPENDENCY;
    assert_string_equal(decode_count(&p, waits, FORMAT_MAX_DEPENDENCIES + 1), "invalid counts");
    assert_string_not_equal(decode_count(&p, waits, FORMAT_MAX_DEPENDENCIES), "invalid counts");
    // The payload has space for this number of shapes.
    uint32_t shapes = (uint32_t)(p.bytes.size - FORMAT_HEAD_BYTES) / FORMAT_SHAPE_BYTES;
    assert_string_equal(decode_count(&p, FORMAT_AT_SHAPES, shapes + 1), "invalid counts");
    assert_string_not_equal(decode_count(&p, FORMAT_AT_SHAPES, shapes), "invalid counts");
    // Two ops can use at most two new slots and four new threads.
    assert_string_equal(decode_changed(&p, head + FORMAT_AT_SLOT_LIMIT, 2), "");
    assert_string_equal(decode_changed(&p, head + FORMAT_AT_SLOT_LIMIT, 3), "invalid slot limit");
    assert_string_equal(decode_changed(&p, head + FORMAT_AT_THREAD_LIMIT, 4), "");
    assert_string_equal(decode_changed(&p, head + FORMAT_AT_THREAD_LIMIT, 5),
                        "invalid thread limit");
    // Slot 0 is freed. Slot 1 is the first slot that is not below the limit.
    assert_string_equal(decode_changed(&p, used, used[0]), "");
    assert_string_equal(decode_changed(&p, used, used[0] + 1), "invalid slot");
    assert_string_equal(decode_changed(&p, used, used[0] + 2), "invalid slot");
    // A thread cannot depend on its own op, or on an op with the same stamp.
    assert_int_equal(dependency[1], 0);
    assert_string_equal(decode_changed(&p, dependency + 1, 1), "invalid dependency");
    assert_int_equal(blocks[2 * FORMAT_BLOCK_VALUES - 1], 1);
    assert_string_equal(decode_changed(&p, blocks + 2 * FORMAT_BLOCK_VALUES - 1, 0),
                        "a dependency does not point to an earlier op");
    buf_release(&p.bytes);
    encode_frame_release(&f);
    encode_release(&x);
    (void)unused;
}

static void two_frames_continue(void **unused)
{
    struct encode x;
    struct encode_frame f = {0};
    struct encode_payload p = {0};
    struct decode d = {.has_stamps = true};
    const char *what;
    fill(&x, true);
    encode_end_frame(&x, &f);
    assert_int_equal(encode_pack(&f, &p), 0);
    assert_int_equal(decode_frame(&d, p.bytes.data, p.bytes.size, &what), 0);
    add(&x, 0, (struct workload_op){.kind = HT_FREE, .stamp = 1 << 20, .slot = 0});
    encode_end_frame(&x, &f);
    assert_int_equal(encode_pack(&f, &p), 0);
    // Decodes a piece twice, and a piece without the preceding piece.
    struct decode alone = {.has_stamps = true};
    assert_int_equal(decode_frame(&alone, p.bytes.data, p.bytes.size, &what), -EBADMSG);
    assert_int_equal(decode_frame(&d, p.bytes.data, p.bytes.size, &what), 0);
    assert_int_equal(d.runs[0].first_op, 53);
    assert_int_equal(decode_frame(&d, p.bytes.data, p.bytes.size, &what), -EBADMSG);
    decode_release(&d);
    decode_release(&alone);
    buf_release(&p.bytes);
    encode_frame_release(&f);
    encode_release(&x);
    (void)unused;
}

// Reads a workload of these ops. Returns the error message, or "". The summary matches the ops
// except for the peak.
static const char *read_ops(const struct workload_thread_op *ops, size_t n, uint64_t more_peak)
{
    static struct err e;
    struct output out;
    struct input in;
    struct workload_output to = {0};
    struct workload_file w = {0};
    const struct workload_op *op;
    uint32_t thread;
    e = (struct err){0};
    assert_int_equal(output_open_unnamed(&out, &e), 0);
    assert_int_equal(
        workload_output_begin(&to, &out, 1, &(struct workload_header){.has_stamps = true}, &e), 0);
    for (size_t i = 0; i < n; i++) {
        struct workload_op one = ops[i].op;
        one.stamp = i + 1;
        assert_int_equal(workload_output_op(&to, ops[i].thread, &one, &e), 0);
    }
    struct workload_summary s = workload_output_summary(&to);
    s.peak_live_bytes += more_peak;
    assert_int_equal(workload_write_end(to.writer, &s, &e), 0);
    workload_output_release(&to);
    assert_int_equal(input_from_output(&in, &out, "w", &e), 0);
    assert_int_equal(workload_file_adopt(&w, &in, &e), 0);
    workload_reader_prove_order(w.reader);
    while (workload_next_op(w.reader, &thread, &op, &e) > 0) {
    }
    workload_file_close(&w);
    return e.text;
}

#define OP(in_thread, call, in_slot)                                                               \
    {                                                                                              \
        .thread = (in_thread), .op = {.kind = (call), .slot = (in_slot), .size = 8 }               \
    }
#define AFTER(in_thread, call, in_slot, ...)                                                       \
    {                                                                                              \
        .thread = (in_thread), .op = {                                                             \
            .kind = (call),                                                                        \
            .slot = (in_slot),                                                                     \
            .size = 8,                                                                             \
            .n_dependencies = 1,                                                                   \
            .dependencies = &(struct workload_dependency){__VA_ARGS__}                             \
        }                                                                                          \
    }
#define READ(ops) read_ops(ops, sizeof(ops) / sizeof *(ops), 0)

static void slots_are_used_as_they_may(void **unused)
{
    const struct workload_thread_op twice[] = {OP(0, HT_MALLOC, 0), OP(0, HT_MALLOC, 1),
                                               OP(0, HT_MALLOC, 0)};
    const struct workload_thread_op freed[] = {OP(0, HT_MALLOC, 0), OP(0, HT_FREE, 0),
                                               OP(0, HT_FREE, 0)};
    const struct workload_thread_op good[] = {OP(0, HT_MALLOC, 0), OP(0, HT_FREE, 0),
                                              OP(0, HT_MALLOC, 0)};
    assert_non_null(
        strstr(READ(twice),
               "w: invalid frame: op 2 of thread 0 allocates into slot 0, which already holds a "
               "block, at byte "));
    assert_non_null(
        strstr(READ(freed),
               "w: invalid frame: op 2 of thread 0 uses slot 0, which holds no block, at byte "));
    assert_string_equal(READ(good), "");
    (void)unused;
}

static void summaries_agree(void **unused)
{
    const struct workload_thread_op ops[] = {OP(0, HT_MALLOC, 0), OP(0, HT_FREE, 0),
                                             OP(0, HT_MALLOC, 0)};
    assert_string_equal(read_ops(ops, 3, 0), "");
    assert_non_null(strstr(read_ops(ops, 3, 1 << 20),
                           "the summary says peak_live_bytes 1048584, its ops make 8, at byte "));
    (void)unused;
}

static void uses_are_ordered(void **unused)
{
    const struct workload_thread_op race[] = {OP(0, HT_MALLOC, 0), OP(1, HT_FREE, 0)};
    const struct workload_thread_op early[] = {OP(0, HT_MALLOC, 0), OP(0, HT_MALLOC, 1),
                                               AFTER(1, HT_FREE, 1, 0, 0)};
    const struct workload_thread_op direct[] = {OP(0, HT_MALLOC, 0), AFTER(1, HT_FREE, 0, 0, 0)};
    // Thread 1 orders the two uses: thread 2 depends on op 1 of thread 1. This op follows a free by
    // thread 1, which depends on thread 0.
    const struct workload_thread_op through[] = {OP(0, HT_MALLOC, 0), OP(0, HT_MALLOC, 1),
                                                 AFTER(1, HT_FREE, 1, 0, 1), OP(1, HT_MALLOC, 1),
                                                 AFTER(2, HT_FREE, 0, 1, 1)};
    // Thread 2 depends on an op of thread 1 that precedes thread 1's dependency on thread 0.
    const struct workload_thread_op before[] = {OP(0, HT_MALLOC, 0), OP(1, HT_MALLOC, 1),
                                                AFTER(1, HT_FREE, 0, 0, 0), OP(1, HT_MALLOC, 0),
                                                AFTER(2, HT_FREE, 0, 1, 0)};
    const struct workload_thread_op created[] = {
        OP(0, HT_MALLOC, 0),
        {.op = {.kind = HT_THREAD_CREATE, .value = 1, .slot = WORKLOAD_NO_SLOT}},
        OP(1, HT_FREE, 0)};
    const struct workload_thread_op preexisting[] = {OP(0, HT_PREEXISTING, 0), OP(1, HT_FREE, 0)};
    assert_non_null(
        strstr(READ(race),
               "op 0 of thread 1 uses slot 0 without a dependency on its use by op 0 of thread 0"));
    assert_non_null(
        strstr(READ(early),
               "op 0 of thread 1 uses slot 1 without a dependency on its use by op 1 of thread 0"));
    assert_non_null(
        strstr(READ(before),
               "op 0 of thread 2 uses slot 0 without a dependency on its use by op 2 of thread 1"));
    assert_string_equal(READ(direct), "");
    assert_string_equal(READ(through), "");
    assert_string_equal(READ(created), "");
    assert_string_equal(READ(preexisting), "");
    (void)unused;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changed_bytes),       cmocka_unit_test(limits_and_dependencies),
        cmocka_unit_test(two_frames_continue), cmocka_unit_test(slots_are_used_as_they_may),
        cmocka_unit_test(summaries_agree),     cmocka_unit_test(uses_are_ordered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
