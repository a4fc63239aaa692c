// Tests the names of code addresses, in memory and as payloads of frames.
#include "trace/names.h"

#include "unit.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static void add(struct names *n, uint32_t module, uint64_t start, uint64_t bytes,
                const char *function)
{
    assert_int_equal(names_begin(n, module, start, bytes), 0);
    assert_int_equal(names_function(n, function, strlen(function), "a.c", 3, 7), 0);
}

static void finds(const struct names_index *x, uint32_t module, uint64_t address,
                  const char *function)
{
    const struct names_entry *e = names_find(x, module, address);
    if (!function) {
        assert_null(e);
        return;
    }
    assert_non_null(e);
    assert_string_equal(names_text(x->names, x->names->functions[e->first].function), function);
}

static void fill(struct names *n)
{
    add(n, 0, 0x1000, 0x100, "jit");
    add(n, 0, 0x1080, 0x10, "within");
    add(n, 0, 0x1000, 0x100, "jit again");
    add(n, 2, 0x1000, 1, "of module 2");
    assert_int_equal(names_function(n, "outer", 5, "", 0, 0), 0);
    add(n, 1, UINT64_MAX, 1, "at the end");
    assert_int_equal(names_begin(n, 3, 5, 1), 0); // without functions
}

static void check(const struct names *n)
{
    struct names_index x;
    assert_int_equal(names_index_init(&x, n), 0);
    finds(&x, 0, 0x0fff, NULL);
    finds(&x, 0, 0x1000, "jit again");
    finds(&x, 0, 0x107f, "jit again");
    finds(&x, 0, 0x1080, "within");
    finds(&x, 0, 0x1090, NULL);
    finds(&x, 2, 0x1000, "of module 2");
    finds(&x, 2, 0x1001, NULL);
    finds(&x, 1, UINT64_MAX, "at the end");
    finds(&x, 1, 0x1000, NULL);
    finds(&x, 3, 5, NULL);
    finds(&x, 4, 5, NULL);
    const struct names_entry *e = names_find(&x, 2, 0x1000);
    assert_int_equal(e->n, 2);
    assert_string_equal(names_text(n, n->functions[e->first + 1].function), "outer");
    assert_string_equal(names_text(n, n->functions[e->first].file), "a.c");
    assert_string_equal(names_text(n, n->functions[e->first + 1].file), "");
    assert_int_equal(n->functions[e->first].line, 7);
    names_index_release(&x);
}

static void there_and_back(void **state)
{
    struct names n = {0}, back = {0}, copy = {0};
    struct buf b = {0};
    uint32_t process = 0;
    size_t entry = 0;
    (void)state;
    fill(&n);
    check(&n);
    assert_int_equal(names_put(&b, &n, 5, &entry), 0);
    assert_int_equal(entry, n.n_entries);
    assert_int_equal(names_get(b.data, b.size, &back, &process), 0);
    assert_int_equal(process, 5);
    check(&back);
    // Each text is stored once.
    assert_int_equal(back.texts.size, n.texts.size);
    assert_int_equal(names_copy(&copy, &n, 0), 0);
    check(&copy);
    buf_release(&b);
    names_release(&n);
    names_release(&back);
    names_release(&copy);
}

static void modules_are_shifted(void **state)
{
    struct names n = {0}, copy = {0};
    struct names_index x;
    (void)state;
    add(&n, 0, 10, 1, "made");
    add(&n, 1, 10, 1, "first");
    assert_int_equal(names_copy(&copy, &n, 4), 0);
    assert_int_equal(names_index_init(&x, &copy), 0);
    finds(&x, 0, 10, "made");
    finds(&x, 5, 10, "first");
    finds(&x, 1, 10, NULL);
    names_index_release(&x);
    names_release(&n);
    names_release(&copy);
}

// Payloads are limited in size; a large number of names must survive the split.
static void many(void **state)
{
    enum { MANY = 100000 };
    struct names n = {0}, back = {0};
    struct names_index x;
    struct buf b = {0};
    char text[200];
    uint32_t process;
    unsigned frames = 0;
    (void)state;
    memset(text, 'x', sizeof text);
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(names_begin(&n, 0, i * 16u, 16), 0);
        memcpy(text, &i, sizeof i); // the bytes are unprintable; a NUL ends the text
        text[0] |= 1, text[1] |= 1, text[2] |= 1, text[3] |= 1;
        assert_int_equal(names_function(&n, text, sizeof text, "", 0, i), 0);
    }
    for (size_t entry = 0; entry < n.n_entries; frames++) {
        b.size = 0;
        assert_int_equal(names_put(&b, &n, 0, &entry), 0);
        assert_true(b.size < 2u * NAMES_FRAME_BYTES);
        assert_int_equal(names_get(b.data, b.size, &back, &process), 0);
    }
    assert_true(frames > 3);
    assert_int_equal(back.n_entries, MANY);
    assert_int_equal(names_index_init(&x, &back), 0);
    for (unsigned i = 0; i < MANY; i += 999)
        assert_int_equal(back.functions[names_find(&x, 0, i * 16u + 15)->first].line, i);
    names_index_release(&x);
    buf_release(&b);
    names_release(&n);
    names_release(&back);
}

// Any payload is either rejected or read. Texts longer than the format's limit are truncated when
// they are added.
static void bad_payloads(void **state)
{
    static char text[NAMES_TEXT_BYTES + 10];
    struct names n = {0};
    struct buf b = {0};
    uint64_t seed = 14;
    uint32_t process;
    size_t entry = 0;
    (void)state;
    memset(text, 'y', sizeof text);
    fill(&n);
    assert_int_equal(names_function(&n, text, sizeof text, "", 0, 1), 0);
    assert_int_equal(strlen(names_text(&n, n.functions[n.n_functions - 1].function)),
                     NAMES_TEXT_BYTES);
    assert_int_equal(names_put(&b, &n, 1, &entry), 0);
    uint8_t *garbled = malloc(b.size);
    for (unsigned i = 0; i < 20000; i++) {
        struct names to = {0};
        memcpy(garbled, b.data, b.size);
        size_t size = i % 2 ? unit_random(&seed) % b.size : b.size;
        for (unsigned k = 0; k < i % 8; k++)
            garbled[unit_random(&seed) % 120] = (uint8_t)unit_random(&seed);
        int rc = names_get(garbled, size, &to, &process);
        assert_true(rc == 0 || rc == -EBADMSG);
        names_release(&to);
    }
    // The entry contains more functions than the format allows.
    static const uint8_t too_many[] = {0, 0, 2, 1, NAMES_FUNCTIONS + 1};
    struct names to = {0};
    assert_int_equal(names_get(too_many, sizeof too_many, &to, &process), -EBADMSG);
    names_release(&to);
    // The first value that is too large for each field.
    static const struct {
        uint8_t bytes[9], n;
        bool good;
    } limits[] = {
        {{0xff, 0xff, 0xff, 0xff, 0x0f}, 5, true},              // process
        {{0, 0xff, 0xff, 0xff, 0xff, 0x0f, 2, 1, 0}, 9, true},  // module
        {{0, 0x80, 0x80, 0x80, 0x80, 0x10, 2, 1, 0}, 9, false}, // module
        {{0, 0, 2, 1, NAMES_FUNCTIONS}, 5, false},              // the functions are missing
        {{0, 0, 2, 1, 0}, 5, true},
        {{0, 0, 2, 1}, 4, false},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        assert_int_equal(names_get(limits[i].bytes, limits[i].n, &to, &process),
                         limits[i].good ? 0 : -EBADMSG);
        names_release(&to);
    }
    // Lines are below 2^31.
    static const uint8_t line_limit[] = {0, 0, 2, 1, 1, 1, 'f', 0, 0xff, 0xff, 0xff, 0xff, 0x07};
    uint8_t line[sizeof line_limit];
    memcpy(line, line_limit, sizeof line);
    assert_int_equal(names_get(line, sizeof line, &to, &process), 0);
    assert_int_equal(to.functions[0].line, INT32_MAX);
    names_release(&to);
    line[sizeof line - 1] = 0x08;
    assert_int_equal(names_get(line, sizeof line, &to, &process), -EBADMSG);
    names_release(&to);
    // Process 2^32 has the same low 32 bits as process 0.
    static const uint8_t process_0[] = {0}, far_process[] = {0x80, 0x80, 0x80, 0x80, 0x10};
    assert_int_equal(names_get(process_0, sizeof process_0, &to, &process), 0);
    assert_int_equal(names_get(far_process, sizeof far_process, &to, &process), -EBADMSG);
    assert_int_equal(names_get(too_many, 0, &to, &process), -EBADMSG);
    free(garbled);
    buf_release(&b);
    names_release(&n);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(there_and_back),
    cmocka_unit_test(modules_are_shifted),
    cmocka_unit_test(many),
    cmocka_unit_test(bad_payloads),
};

UNIT_MAIN(tests)
