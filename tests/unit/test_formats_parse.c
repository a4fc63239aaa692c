// Tests valid and invalid lines of the text formats.
#include "formats/export_buffer.h"
#include "formats/logalloc.h"
#include "formats/text.h"

#include "unit.h"

#include <stdio.h>
#include <string.h>

enum line_format { ANDROID, LOGALLOC, MUNGED };

static const char *parse_line(enum line_format f, const char **at, const char *end,
                              struct text_call *call)
{
    if (f == ANDROID)
        return text_parse_android(at, end, call);
    return logalloc_parse(at, end, f == MUNGED ? &logalloc_munged : &logalloc_raw, call);
}

static const char *parse(enum line_format f, const char *line, struct text_call *call, size_t *at)
{
    char text[512] = {0};
    assert_true(strlen(line) + TEXT_SLACK < sizeof text);
    strcpy(text, line);
    const char *p = text;
    const char *expected = parse_line(f, &p, strchr(text, '\n'), call);
    *at = (size_t)(p - text);
    return expected;
}

struct right {
    enum line_format format;
    const char *line;
    struct text_call call;
};

#define EV(...)                                                                                    \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static const struct right rights[] = {
    {ANDROID,
     "186: malloc 0xb6027400 1024\n",
     {EV(.kind = HT_MALLOC, .result = 0xb6027400, .size = 1024), 1, 186}},
    {ANDROID, "1: free 0x0\n", {EV(.kind = HT_FREE), 1, 1}},
    {ANDROID,
     "1: calloc 0x10 2 8\n",
     {EV(.kind = HT_CALLOC, .result = 16, .count = 2, .size = 8), 1, 1}},
    {ANDROID,
     "1: realloc 0x20 0x10 8 5 7\n",
     {EV(.kind = HT_REALLOC, .result = 32, .ptr = 16, .size = 8), 1, 1, 5, 7, true}},
    {ANDROID,
     "4294967295: memalign 0xffffffffffffffff 64 18446744073709551615\n",
     {EV(.kind = HT_MEMALIGN, .result = UINT64_MAX, .align = 64, .size = UINT64_MAX), 1,
      UINT32_MAX}},
    {ANDROID, "1: thread_done 0x0\n", {EV(.kind = HT_THREAD_END), 1, 1}},
    {LOGALLOC,
     "18545 18546 malloc(32)=0x7f90495120e0\n",
     {EV(.kind = HT_MALLOC, .size = 32, .result = 0x7f90495120e0), 18545, 18546}},
    {LOGALLOC, "7 malloc(32)=(nil)\n", {EV(.kind = HT_MALLOC, .size = 32), 7, 7}},
    {LOGALLOC, "7 malloc(32)=0x0\n", {EV(.kind = HT_MALLOC, .size = 32), 7, 7}},
    {LOGALLOC, "7 7 free((nil))\n", {EV(.kind = HT_FREE), 7, 7}},
    {LOGALLOC,
     "7 140187732541248 calloc(1,148)=0x10\n",
     {EV(.kind = HT_CALLOC, .count = 1, .size = 148, .result = 16), 7, 140187732541248}},
    {LOGALLOC,
     "7 7 realloc(0x10,64)=0x20\n",
     {EV(.kind = HT_REALLOC, .ptr = 16, .size = 64, .result = 32), 7, 7}},
    {LOGALLOC,
     "7 7 posix_memalign(256,240)=0x100\n",
     {EV(.kind = HT_POSIX_MEMALIGN, .align = 256, .size = 240, .result = 256), 7, 7}},
    {LOGALLOC,
     "7 7 aligned_alloc(256,240)=0x100\n",
     {EV(.kind = HT_ALIGNED_ALLOC, .align = 256, .size = 240, .result = 256), 7, 7}},
    {LOGALLOC,
     "7 7 memalign(256,240)=0x100\n",
     {EV(.kind = HT_MEMALIGN, .align = 256, .size = 240, .result = 256), 7, 7}},
    {LOGALLOC, "7 7 valloc(1)=0x1000\n", {EV(.kind = HT_VALLOC, .size = 1, .result = 4096), 7, 7}},
    {LOGALLOC, "7 7 jemalloc_stats()\n", {EV(.kind = HT_MALLOC_STATS), 7, 7}},
    {MUNGED,
     "1 2 realloc(#1,64)=#3\n",
     {EV(.kind = HT_REALLOC, .ptr = 1 << 4, .size = 64, .result = 3 << 4), 1, 2}},
    {MUNGED, "1 free(#1)\n", {EV(.kind = HT_FREE, .ptr = 1 << 4), 1, 1}},
};

static void every_function_is_understood(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rights / sizeof *rights; i++) {
        struct text_call call;
        size_t at;
        const char *expected = parse(rights[i].format, rights[i].line, &call, &at);
        if (expected || memcmp(&call, &rights[i].call, sizeof call) != 0)
            fail_msg("%s: %s at %zu", rights[i].line, expected ? expected : "another call", at);
    }
}

struct wrong {
    enum line_format format;
    const char *line;
    size_t at; // offset of the error
    const char *expected;
};

static const struct wrong wrongs[] = {
    {ANDROID, "\n", 0, "a thread id"},
    {ANDROID, "-1: malloc 0x10 1\n", 0, "a thread id"},
    {ANDROID, "4294967296: malloc 0x10 1\n", 10, "a thread id"},
    {ANDROID, "1 malloc 0x10 1\n", 1, "': '"},
    {ANDROID, "1: mallok 0x10 1\n", 3, "malloc, calloc, realloc, memalign, free or thread_done"},
    {ANDROID, "1: malloc\n", 3, "malloc, calloc, realloc, memalign, free or thread_done"},
    {ANDROID, "1: malloc 16 1\n", 10, "an address"},
    {ANDROID, "1: malloc 0xg 1\n", 10, "an address"},
    {ANDROID, "1: malloc 0x10000000000000000 1\n", 10, "an address"},
    {ANDROID, "1: malloc 0x10\n", 14, "a space and another value"},
    {ANDROID, "1: malloc 0x10 \n", 15, "a size"},
    {ANDROID, "1: malloc 0x10 18446744073709551616\n", 15, "a size"},
    {ANDROID, "1: malloc 0x10 99999999999999999999999\n", 15, "a size"},
    {ANDROID, "1: malloc 0x10 1 2\n", 18, "a space and the time of the end"},
    {ANDROID, "1: malloc 0x10 1 2 3 4\n", 20, "the end of the line"},
    {ANDROID, "1: free 0x10 1\n", 14, "a space and the time of the end"},
    {ANDROID, "1: calloc 0x10 8\n", 16, "a space and another value"},
    {LOGALLOC, "\n", 0, "a process id"},
    {LOGALLOC, "4294967296 1 free(0x10)\n", 10, "a process id"},
    {LOGALLOC, "1free(0x10)\n", 1, "a space and a thread id or function"},
    {LOGALLOC, "1 1free(0x10)\n", 3, "a space and a function"},
    {LOGALLOC, "1 1 strdup(0x10)\n", 4, "a function of logalloc and its parenthesis"},
    {LOGALLOC, "1 1 malloc\n", 4, "a function of logalloc and its parenthesis"},
    {LOGALLOC, "1 1 malloc()=0x10\n", 11, "a size"},
    {LOGALLOC, "1 1 malloc(1,2)=0x10\n", 12, "a closing parenthesis"},
    {LOGALLOC, "1 1 calloc(1)=0x10\n", 12, "a comma and another argument"},
    {LOGALLOC, "1 1 jemalloc_stats(1)\n", 19, "a closing parenthesis"},
    {LOGALLOC, "1 1 malloc(1)\n", 13, "= and a result"},
    {LOGALLOC, "1 1 malloc(1)=\n", 14, "an address"},
    {LOGALLOC, "1 1 malloc(1)=#1\n", 14, "an address"},
    {LOGALLOC, "1 1 free(0x10)=0x10\n", 14, "the end of the line"},
    {LOGALLOC, "1 1 free(0x10) \n", 14, "the end of the line"},
    {MUNGED, "1 1 malloc(1)=0x10\n", 14, "a slot"},
    {MUNGED, "1 1 malloc(1)=(nil)\n", 14, "a slot"},
    {MUNGED, "1 1 malloc(1)=#0\n", 14, "a slot from #1 on"},
    {MUNGED, "1 1 malloc(1)=#99999999999999\n", 14, "a slot from #1 on"},
};

static void errors_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        struct text_call call;
        size_t at;
        const char *expected = parse(wrongs[i].format, wrongs[i].line, &call, &at);
        if (!expected || strcmp(expected, wrongs[i].expected) != 0 || at != wrongs[i].at)
            fail_msg("%s: expected %s at %zu", wrongs[i].line, expected ? expected : "nothing", at);
    }
}

// Replaces, inserts and removes bytes of a valid line. The parser must stay within the line, which
// ends at the end of its own allocation so that AddressSanitizer detects overreads.
static void mutations_stay_within_the_line(void **state)
{
    uint64_t seed = 6;
    unsigned accepted = 0;
    (void)state;
    for (int i = 0; i < 200000; i++) {
        const struct right *r = &rights[unit_random(&seed) % (sizeof rights / sizeof *rights)];
        size_t n = strlen(r->line) - 1, at;
        char text[128];
        memcpy(text, r->line, n);
        for (uint64_t changes = 1 + unit_random(&seed) % 3; changes; changes--) {
            static const char bytes[] = "0123456789abcdefx(),=# :\0\xff";
            size_t where = n ? unit_random(&seed) % n : 0;
            char c = bytes[unit_random(&seed) % (sizeof bytes - 1)];
            if (unit_random(&seed) & 1 && n > 1)
                memmove(text + where, text + where + 1, --n - where);
            else
                text[where] = c;
        }
        char *line = malloc(n + 1 + TEXT_SLACK);
        memcpy(line, text, n);
        line[n] = '\n';
        memset(line + n + 1, '9', TEXT_SLACK);
        struct text_call call;
        const char *p = line;
        const char *expected = parse_line(r->format, &p, line + n, &call);
        at = (size_t)(p - line);
        assert_true(at <= n);
        assert_true(expected || at == n);
        accepted += !expected;
        free(line);
    }
    assert_true(accepted > 1000 && accepted < 190000);
}

static void numbers_come_out_as_they_went_in(void **state)
{
    static const uint64_t edges[] = {
        UINT32_MAX, 1ull << 32,       UINT64_MAX,        99999999,
        100000000,  9999999999999999, 10000000000000000, 10000000000000000000u,
    };
    uint64_t seed = 1;
    (void)state;
    // Tests all groups of four digits, and then random numbers of each length.
    for (uint64_t i = 0; i < 30000; i++) {
        uint64_t v = i < 10000   ? i * 10001
                     : i < 10008 ? edges[i - 10000]
                                 : unit_random(&seed) >> unit_random(&seed) % 64,
                 got;
        char text[64], want[64];
        strcpy(text_decimal(text, v), "\n");
        snprintf(want, sizeof want, "%llu\n", (unsigned long long)v);
        assert_string_equal(text, want);
        const char *at = text;
        assert_true(text_parse_number(&at, &got) && got == v && *at == '\n');
        at = text;
        assert_true(text_parse_long_number(&at, &got) && got == v && *at == '\n');
        strcpy(text_hex(TEXT_PUT(text, "0x"), v), "\n");
        snprintf(want, sizeof want, "0x%llx\n", (unsigned long long)v);
        assert_string_equal(text, want);
        at = text;
        assert_true(text_parse_address(&at, &got) && got == v && *at == '\n');
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_function_is_understood),
    cmocka_unit_test(errors_are_named),
    cmocka_unit_test(mutations_stay_within_the_line),
    cmocka_unit_test(numbers_come_out_as_they_went_in),
};

UNIT_MAIN(tests)
