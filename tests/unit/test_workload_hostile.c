// Payloads that passed their checksum and are wrong all the same: whatever stands in them is refused or is a valid piece
// of a workload, and nothing is read or allocated out of bounds.
#include "workload/decode.h"
#include "workload/encode.h"

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

// A frame with something of everything.
static void fill(struct encode *x, bool has_stamps)
{
    static const struct workload_dependency wait = {0, 1};
    uint64_t stamp = 100;
    encode_init(x);
    x->has_stamps = has_stamps;
    for (uint32_t i = 0; i < 40; i++)
        add(x, 0, (struct workload_op){.kind = HT_MALLOC, .stamp = stamp++, .size = i * i * i, .slot = i});
    add(x, 0, (struct workload_op){.kind = HT_THREAD_CREATE, .stamp = stamp++, .value = 1, .slot = WORKLOAD_NO_SLOT});
    add(x, 1,
        (struct workload_op){.kind = HT_FREE, .stamp = stamp++, .slot = 7, .dependencies = &wait, .n_dependencies = 1});
    add(x, 1, (struct workload_op){.kind = HT_CALLOC, .stamp = stamp++, .slot = 7, .size = 3, .count = 1000});
    add(x, 0, (struct workload_op){.kind = HT_REALLOC, .stamp = stamp++, .slot = 8, .flags = WORKLOAD_MOVED});
    add(x, 0,
        (struct workload_op){
            .kind = HT_MARK, .stamp = stamp++, .slot = WORKLOAD_NO_SLOT, .text = "here", .text_bytes = 4});
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
    // Of its exact size, so that a sanitizer sees each byte read past the end.
    uint8_t *copy = malloc(n ? n : 1);
    memcpy(copy, bytes, n);
    int rc = decode_frame(&d, copy, n, &what);
    if (rc == 0) {
        check_ops(&d);
        ++*accepted;
    } else {
        assert_int_equal(rc, -EBADMSG);
        assert_non_null(what);
    }
    decode_release(&d);
    free(copy);
}

static void mutate(uint8_t *bytes, size_t n)
{
    static const uint8_t odd[] = {0, 1, 0x7f, 0x80, 0xfe, 0xff};
    for (uint64_t i = 1 + pick(3); i-- > 0;) {
        // The head decides most.
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
    // Many changes of sizes and slots are no contradiction; those of counts are.
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
    // Twice the same piece, and one without what comes before it.
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(changed_bytes), cmocka_unit_test(two_frames_continue)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
