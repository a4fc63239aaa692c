// Writes workloads and reads them again, from files that are cut into pieces of any size. Also
// checks that broken files are rejected.
#include "workload/reader.h"
#include "workload/summary.h"
#include "workload/writer.h"

#include "unit_event.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 5 };

static uint64_t random_state;

static uint64_t random_next(void)
{
    return unit_random(&random_state);
}

// A random valid workload in total order, kept for the comparison.
struct history {
    struct workload_op *ops;
    uint32_t *threads;
    struct workload_dependency *dependencies; // one per op
    size_t n;
    uint64_t next_op[THREADS], stamp;
    uint32_t *live, *dead; // slot numbers
    size_t n_live, n_dead;
    uint32_t slots;
};

static uint32_t take_slot(struct history *h)
{
    uint32_t slot = h->n_dead ? h->dead[--h->n_dead] : h->slots++;
    h->live[h->n_live++] = slot;
    return slot;
}

static uint32_t give_slot(struct history *h)
{
    // Young blocks are freed first, as in most programs.
    size_t back = random_next() % 3 ? random_next() % 8 : random_next() % h->n_live;
    size_t i = back < h->n_live ? h->n_live - 1 - back : 0;
    uint32_t slot = h->live[i];
    memmove(h->live + i, h->live + i + 1, (--h->n_live - i) * sizeof *h->live);
    h->dead[h->n_dead++] = slot;
    return slot;
}

static void random_take(struct history *h, struct workload_op *op)
{
    static const uint8_t kinds[] = {HT_MALLOC, HT_MALLOC,         HT_NEW,
                                    HT_CALLOC, HT_POSIX_MEMALIGN, HT_REALLOC};
    op->kind = kinds[random_next() % sizeof kinds];
    op->size = random_next() >> (random_next() % 64);
    if (op->kind == HT_CALLOC)
        op->count = random_next() % 5;
    if (op->kind == HT_POSIX_MEMALIGN)
        op->align = 16u << random_next() % 8;
    if (op->kind == HT_REALLOC)
        op->flags = WORKLOAD_FROM_NULL;
    if (random_next() % 50 == 0) {
        op->flags |= WORKLOAD_FAILED;
        op->error = ENOMEM;
    } else {
        op->slot = take_slot(h);
        op->allocator = random_next() % 3;
    }
}

static void random_use(struct history *h, struct workload_op *op)
{
    unsigned what = random_next() % 8;
    if (what == 0) {
        op->kind = HT_REALLOC;
        op->slot = h->live[random_next() % h->n_live];
        op->size = random_next() % 100000;
        op->flags = random_next() & 1 ? WORKLOAD_MOVED : 0;
    } else if (what == 1) {
        op->kind = HT_REALLOC;
        op->slot = give_slot(h);
        op->flags = WORKLOAD_FREED;
    } else {
        op->kind = what == 2 ? HT_DELETE_SIZED : HT_FREE;
        op->slot = what == 3 ? WORKLOAD_NO_SLOT : give_slot(h);
        op->allocator = random_next() % 3;
        op->size = what == 2 ? 48 : 0;
    }
}

static void random_other(struct workload_op *op)
{
    static const char *const texts[] = {"", "phase one", "a rather longer mark"};
    op->kind = random_next() & 1 ? HT_MARK : HT_MALLOPT;
    if (op->kind == HT_MARK) {
        op->text = texts[random_next() % 3];
        op->text_bytes = (uint32_t)strlen(op->text);
    } else {
        op->value = random_next();
        op->count = 7;
    }
}

static void random_op(struct history *h)
{
    struct workload_op *op = &h->ops[h->n];
    // Threads appear over time.
    uint32_t known = h->n / 100 + 1 < THREADS ? (uint32_t)(h->n / 100 + 1) : THREADS;
    uint32_t thread = (uint32_t)(random_next() % known);
    *op = (struct workload_op){.slot = WORKLOAD_NO_SLOT};
    op->stamp = h->stamp += 1 + random_next() % (random_next() % 100 ? 20 : 100000);
    unsigned what = random_next() % 100;
    if (what == 0)
        random_other(op);
    else if (h->n_live == 0 || what < 50)
        random_take(h, op);
    else
        random_use(h, op);
    uint32_t other = (uint32_t)(random_next() % known);
    if (random_next() % 4 == 0 && other != thread && h->next_op[other]) {
        uint64_t back = random_next() % 4 ? random_next() % 8 : random_next();
        h->dependencies[h->n] =
            (struct workload_dependency){other, h->next_op[other] - 1 - back % h->next_op[other]};
        op->dependencies = &h->dependencies[h->n];
        op->n_dependencies = 1;
    }
    h->next_op[thread]++;
    h->threads[h->n++] = thread;
}

static void history_init(struct history *h, size_t n)
{
    *h = (struct history){
        .ops = calloc(n, sizeof *h->ops),
        .threads = calloc(n, sizeof *h->threads),
        .dependencies = calloc(n, sizeof *h->dependencies),
        .live = calloc(n, sizeof *h->live),
        .dead = calloc(n, sizeof *h->dead),
    };
    while (h->n < n)
        random_op(h);
}

static void history_release(struct history *h)
{
    free(h->ops);
    free(h->threads);
    free(h->dependencies);
    free(h->live);
    free(h->dead);
}

static const char *path(void)
{
    static char text[64];
    snprintf(text, sizeof text, "/tmp/test-workload-%ld.htw", (long)getpid());
    return text;
}

static void write_file(const struct history *h, bool has_stamps, const struct workload_summary *s)
{
    struct err e = {0};
    struct output out;
    assert_int_equal(output_open(&out, path(), OUTPUT_FORCE, &e), 0);
    struct workload_writer *w = workload_writer_new(&out, 1);
    struct workload_header header = {
        .clock_hz = 1000000000,
        .stamp_shift = 4,
        .has_stamps = has_stamps,
        .start_stamp = 77,
        .pid = 4242,
        .exe = "/bin/true",
        .argv = "true\0-x",
        .argv_bytes = 8,
    };
    struct workload_sample samples[] = {{5, 4096, 1024}, {9, 2048, 512}};
    assert_int_equal(workload_write_header(w, &header, &e), 0);
    for (size_t i = 0; i < h->n; i++) {
        if (workload_write_op(w, h->threads[i], &h->ops[i], &e) < 0)
            fail_msg("%s", e.text);
        if (i == h->n / 2)
            assert_int_equal(workload_write_samples(w, samples, 2, &e), 0);
    }
    assert_int_equal(workload_write_end(w, s, &e), 0);
    workload_writer_free(w);
    assert_int_equal(output_close(&out, true, &e), 0);
}

static void same_op(const struct workload_op *a, const struct workload_op *b, bool has_stamps)
{
    unit_assert_kind(a->kind, b->kind);
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->error, b->error);
    assert_int_equal(a->allocator, b->allocator);
    assert_int_equal(a->slot, b->slot);
    assert_int_equal(a->size, b->size);
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->align, b->align);
    assert_int_equal(a->value, b->value);
    assert_int_equal(a->text_bytes, b->text_bytes);
    if (a->text_bytes)
        assert_memory_equal(a->text, b->text, a->text_bytes);
    assert_int_equal(a->n_dependencies, b->n_dependencies);
    for (uint32_t i = 0; i < a->n_dependencies; i++) {
        assert_int_equal(a->dependencies[i].thread, b->dependencies[i].thread);
        assert_int_equal(a->dependencies[i].op, b->dependencies[i].op);
    }
    if (has_stamps)
        assert_int_equal(a->stamp, b->stamp);
}

// Returns the summary of the ops. Also sets the counts that do not come from ops.
static struct workload_summary summary_of(const struct history *h)
{
    struct summary_counter c;
    summary_init(&c);
    for (size_t i = 0; i < h->n; i++)
        assert_int_equal(summary_op(&c, h->threads[i], &h->ops[i]), 0);
    struct workload_summary s = summary_result(&c);
    summary_release(&c);
    s.lost_records = 9;
    s.usable_bytes = UINT64_MAX;
    return s;
}

// Reads the ops and compares them with the written order, which unique stamps determine.
static void read_back(const struct history *h, bool has_stamps, const struct workload_summary *s)
{
    struct err e = {0};
    struct input in;
    struct workload_reader *r;
    struct workload_summary early;
    assert_int_equal(input_open(&in, path(), &e), 0);
    assert_int_equal(workload_reader_open(&r, &in, &e), 0);
    const struct workload_header *header = workload_reader_header(r);
    assert_int_equal(header->pid, 4242);
    assert_int_equal(header->has_stamps, has_stamps);
    assert_string_equal(header->exe, "/bin/true");
    assert_null(header->allocator);
    assert_string_equal(header->heaptape, HEAPTAPE_VERSION);
    assert_int_equal(header->argv_bytes, 8);
    assert_memory_equal(header->argv, "true\0-x", 8);
    assert_int_equal(workload_read_summary(r, &early, &e), 0);
    assert_true(early.samples_at > 0);
    early.samples_at = 0;
    assert_memory_equal(&early, s, sizeof early);
    size_t n;
    const struct workload_sample *samples;
    assert_int_equal(workload_read_samples(r, &samples, &n, &e), 0);
    assert_int_equal(n, 2);
    assert_int_equal(samples[0].anon_bytes, 1024);
    assert_int_equal(samples[1].stamp, 9);
    for (size_t i = 0; i < h->n; i++) {
        uint32_t thread;
        const struct workload_op *op;
        if (workload_next_op(r, &thread, &op, &e) != 1)
            fail_msg("op %zu: %s", i, e.text);
        assert_int_equal(thread, h->threads[i]);
        same_op(op, &h->ops[i], has_stamps);
        if (!has_stamps)
            assert_int_equal(op->stamp, i);
    }
    assert_null(workload_reader_summary(r));
    assert_int_equal(workload_next_op(r, &(uint32_t){0}, &(const struct workload_op *){0}, &e), 0);
    struct workload_summary late = *workload_reader_summary(r);
    late.samples_at = 0;
    assert_memory_equal(&late, s, sizeof late);
    samples = workload_reader_samples(r, &n);
    assert_int_equal(n, 2);
    assert_int_equal(samples[1].rss_bytes, 2048);
    assert_int_equal(samples[1].stamp, 9);
    workload_reader_close(r);
    input_close(&in);
}

static void round_trip(void **state)
{
    struct history h;
    history_init(&h, 300000);
    const struct workload_summary s = summary_of(&h);
    for (int stamps = 1; stamps >= 0; stamps--) {
        write_file(&h, stamps, &s);
        read_back(&h, stamps, &s);
    }
    history_release(&h);
    unlink(path());
    (void)state;
}

static void empty_round_trip(void **state)
{
    struct history h = {0};
    const struct workload_summary s = summary_of(&h);
    write_file(&h, true, &s);
    struct err e = {0};
    struct input in;
    struct workload_reader *r;
    const struct workload_run *runs;
    size_t n;
    assert_int_equal(input_open(&in, path(), &e), 0);
    assert_int_equal(workload_reader_open(&r, &in, &e), 0);
    assert_int_equal(workload_next_runs(r, &runs, &n, &e), 0);
    assert_non_null(workload_reader_summary(r));
    workload_reader_close(r);
    input_close(&in);
    unlink(path());
    (void)state;
}

// Reads a file with these bytes. Returns the number of ops before the end or the error, and the
// result in *rc.
static size_t read_bytes(const uint8_t *bytes, size_t n, int *rc)
{
    struct err e = {0};
    FILE *f = fopen(path(), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
    struct input in;
    struct workload_reader *r = NULL;
    size_t ops = 0;
    *rc = input_open(&in, path(), &e);
    if (*rc == 0)
        *rc = workload_reader_open(&r, &in, &e);
    if (*rc == 0) {
        uint32_t thread;
        const struct workload_op *op;
        while ((*rc = workload_next_op(r, &thread, &op, &e)) > 0)
            ops++;
    }
    if (*rc < 0)
        assert_true(e.text[0]);
    workload_reader_close(r);
    input_close(&in);
    return ops;
}

static uint8_t *slurp(size_t *n)
{
    FILE *f = fopen(path(), "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    uint8_t *bytes = malloc(*n);
    assert_int_equal(fread(bytes, 1, *n, f), *n);
    fclose(f);
    return bytes;
}

static void cut_off_is_reported(void **state)
{
    struct history h;
    history_init(&h, 140000);
    const struct workload_summary s = summary_of(&h);
    write_file(&h, true, &s);
    size_t n, most = 0;
    uint8_t *bytes = slurp(&n);
    for (size_t cut = 1; cut < n; cut += cut < 100 || cut + 900 > n ? 1 + random_next() % 8 : 501) {
        if (cut > 1000 && cut + 70000 < n)
            cut += 49973;
        int rc;
        size_t ops = read_bytes(bytes, cut, &rc);
        if (rc != -ENODATA)
            fail_msg("cut at %zu of %zu: %d", cut, n, rc);
        most = ops > most ? ops : most;
    }
    assert_int_equal(most, 140000);
    free(bytes);
    history_release(&h);
    unlink(path());
    (void)state;
}

static void flipped_bits_are_found(void **state)
{
    struct history h;
    history_init(&h, 800);
    const struct workload_summary s = summary_of(&h);
    write_file(&h, true, &s);
    size_t n;
    uint8_t *bytes = slurp(&n);
    for (size_t i = 0; i < n; i += 1 + random_next() % 32) {
        int rc;
        bytes[i] ^= (uint8_t)(1u << random_next() % 8);
        read_bytes(bytes, n, &rc);
        if (rc != -EBADMSG && rc != -EPROTO)
            fail_msg("byte %zu of %zu: %d", i, n, rc);
        write_file(&h, true, &s);
        free(bytes);
        bytes = slurp(&n);
    }
    bytes = realloc(bytes, n + 1);
    bytes[n] = 0;
    int rc;
    read_bytes(bytes, n + 1, &rc);
    assert_int_equal(rc, -EBADMSG);
    free(bytes);
    history_release(&h);
    unlink(path());
    (void)state;
}

static int write_one(const struct workload_op *op, uint32_t thread)
{
    struct err e = {0};
    struct output out;
    assert_int_equal(output_open(&out, "/dev/null", 0, &e), 0);
    struct workload_writer *w = workload_writer_new(&out, 1);
    assert_int_equal(workload_write_header(w, &(struct workload_header){.has_stamps = true}, &e),
                     0);
    struct workload_op first = {.kind = HT_MALLOC, .slot = 0, .stamp = 10};
    assert_int_equal(workload_write_op(w, 0, &first, &e), 0);
    int rc = workload_write_op(w, thread, op, &e);
    workload_writer_free(w);
    output_close(&out, true, &e);
    return rc;
}

static void writer_keeps_the_rules(void **state)
{
    struct workload_dependency on_first = {0, 0}, on_next = {0, 1};
    struct workload_op ok = {
        .kind = HT_FREE, .slot = 0, .stamp = 11, .n_dependencies = 1, .dependencies = &on_first};
    assert_int_equal(write_one(&ok, 1), 0);
    struct workload_op early = ok, ahead = ok, same_time = ok, unknown_slot = ok,
                       far_slot = {.kind = HT_MALLOC};
    ahead.dependencies = &on_next;
    assert_int_equal(write_one(&ahead, 1), -EINVAL);
    same_time.stamp = 10;
    assert_int_equal(write_one(&same_time, 1), -EINVAL);
    assert_int_equal(write_one(&ok, 0), -EINVAL); // waits for itself
    assert_int_equal(write_one(&ok, 2), -EINVAL); // waits for an unknown thread
    early.stamp = 9;
    early.n_dependencies = 0;
    assert_int_equal(write_one(&early, 0), -EINVAL);
    assert_int_equal(write_one(&early, 1), 0);
    unknown_slot.slot = 1;
    assert_int_equal(write_one(&unknown_slot, 1), -EINVAL);
    far_slot.slot = 2;
    assert_int_equal(write_one(&far_slot, 1), -EINVAL);
    struct workload_op half = {.kind = HT_REALLOC_BEGIN, .slot = WORKLOAD_NO_SLOT};
    assert_int_equal(write_one(&half, 1), -EINVAL);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(empty_round_trip),
        cmocka_unit_test(cut_off_is_reported),
        cmocka_unit_test(flipped_bits_are_found),
        cmocka_unit_test(writer_keeps_the_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
