#include "formats/text.h"

#include <stdio.h>

// Describes the text at `at` for use in a message: "'word'", "the end of the line", "byte 0x00".
static void quote(char quoted[40], const char *at, const char *end)
{
    size_t n = 0;
    while (n < 16 && at + n < end && at[n] > ' ' && at[n] < 0x7f)
        n++;
    if (n)
        snprintf(quoted, 40, "'%.*s'", (int)n, at);
    else if (at >= end)
        snprintf(quoted, 40, "the end of the line");
    else if (*at == ' ')
        snprintf(quoted, 40, "a space");
    else
        snprintf(quoted, 40, "byte 0x%02x", (unsigned char)*at);
}

static unsigned count_digits(uint64_t v)
{
    static const uint64_t powers[] = {0,    1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,
                                      1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19};
    unsigned bits = 64 - (unsigned)__builtin_clzll(v | 1),
             digits = bits * 1233 >> 12; // 1233 / 4096 approximates log10(2)
    return digits + (v >= powers[digits]);
}

bool text_parse_long_number(const char **at, uint64_t *v)
{
    static const uint32_t powers[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
    const char *p = *at;
    uint64_t n = 0, more;
    // Fast path for numbers of up to 15 digits, such as times.
    unsigned first = text_digits(p, &n), second = first == 8 ? text_digits(p + 8, &more) : 8;
    if (second < 8) {
        *at += 8 + second;
        *v = n * powers[second] + more;
        return true;
    }
    for (n = 0; (unsigned char)(*p - '0') < 10; p++) {
        unsigned digit = (unsigned)(*p - '0');
        // 19 digits cannot overflow.
        if (__builtin_expect(p - *at >= 19, 0) &&
            (n > UINT64_MAX / 10 || n * 10 > UINT64_MAX - digit))
            return false;
        n = n * 10 + digit;
    }
    if (p == *at)
        return false;
    *at = p;
    *v = n;
    return true;
}

#define SIXTEEN 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16
#define DIGITS  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 16, 16, 16, 16, 16
#define LETTERS 16, 10, 11, 12, 13, 14, 15, 16, 16, 16, 16, 16, 16, 16, 16, 16
const uint8_t text_hex_digits[256] = {
    SIXTEEN, SIXTEEN, SIXTEEN, DIGITS,  LETTERS, SIXTEEN, LETTERS, SIXTEEN,
    SIXTEEN, SIXTEEN, SIXTEEN, SIXTEEN, SIXTEEN, SIXTEEN, SIXTEEN, SIXTEEN,
};

char *text_decimal(char *to, uint64_t v)
{
    static const char pairs[] =
        "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
        "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
        "8081828384858687888990919293949596979899";
    char *end = to + count_digits(v), *at = end;
    for (; v >= 100; v /= 100)
        memcpy(at -= 2, pairs + 2 * (v % 100), 2);
    if (v >= 10)
        memcpy(at - 2, pairs + 2 * v, 2);
    else
        at[-1] = (char)('0' + v);
    return end;
}

char *text_hex(char *to, uint64_t v)
{
    unsigned digits = v ? (unsigned)(67 - __builtin_clzll(v)) / 4 : 1;
    for (unsigned i = digits; i-- > 0;)
        *to++ = "0123456789abcdef"[v >> 4 * i & 15];
    return to;
}

char *text_put_address(char *to, uint64_t v)
{
    return text_hex(TEXT_PUT(to, "0x"), v);
}

int text_next(struct import *im, struct text_line *line)
{
    size_t n;
    int rc = import_line(im, &line->at, &n);
    if (rc <= 0)
        return rc;
    line->end = line->at + n;
    if (im->format->import.keeps_blanks)
        return 1;
    if (__builtin_expect(*line->end != '\n', 0)) {
        rc = import_bad(im, IMPORT_LINE, "expected a newline at its end: the file is cut off");
        return rc < 0 ? rc : 0;
    }
    while (line->end > line->at &&
           (line->end[-1] == '\r' || line->end[-1] == ' ' || line->end[-1] == '\t'))
        line->end--;
    // The source owns the buffer, which is writable. Without this newline, parsers would accept
    // trailing blanks and continue past the end of the line.
    *(char *)(uintptr_t)line->end = '\n';
    return 1;
}

int text_bad(struct import *im, const struct text_line *line, const char *expected)
{
    char quoted[40];
    quote(quoted, line->at, line->end);
    return import_bad(im, IMPORT_LINE, "expected %s, not %s", expected, quoted);
}

// Members of struct event that contain numbers.
static const struct {
    size_t offset;
    const char *expected;
} numbers[] = {
    [TEXT_SIZE] = {offsetof(struct event, size), "a size"},
    [TEXT_COUNT] = {offsetof(struct event, count), "a number of elements"},
    [TEXT_ALIGN] = {offsetof(struct event, align), "an alignment"},
};

static const char *parse_value(const char **at, enum text_value value, const struct text_syntax *s,
                               struct event *ev)
{
    uint64_t ignored;
    if (value == TEXT_PTR || value == TEXT_RESULT)
        return s->parse_block(at, value == TEXT_PTR ? &ev->ptr : &ev->result);
    if (value == TEXT_ZERO)
        return text_parse_address(at, &ignored) ? NULL : "0x0";
    void *number = (char *)ev + numbers[value].offset;
    return text_parse_number(at, number) ? NULL : numbers[value].expected;
}

const char *text_parse_function(const char **at, const struct text_syntax *s, struct event *ev)
{
    const struct text_function *f = s->functions;
    while (f->name && !(**at == *f->name && text_match_bytes(at, f->name, f->length)))
        f++;
    if (!f->name)
        return s->expected_function;
    ev->kind = f->kind;
    for (unsigned i = 0; f->values[i] != TEXT_END; i++) {
        if (i && !text_match(at, s->separator))
            return s->expected_separator;
        const char *expected = parse_value(at, f->values[i], s, ev);
        if (expected)
            return expected;
    }
    return NULL;
}

static char *put_value(char *to, enum text_value value, const struct text_syntax *s,
                       const struct event *ev)
{
    if (value == TEXT_PTR || value == TEXT_RESULT)
        return s->put_block(to, value == TEXT_PTR ? ev->ptr : ev->result);
    if (value == TEXT_ZERO)
        return TEXT_PUT(to, "0x0");
    const void *number = (const char *)ev + numbers[value].offset;
    return text_decimal(to, *(const uint64_t *)number);
}

char *text_put_function(char *to, const struct text_syntax *s, const struct event *ev)
{
    const struct text_function *f = s->functions;
    while (f->kind != ev->kind)
        f++;
    to = text_put(to, f->name, f->length);
    for (unsigned i = 0; f->values[i] != TEXT_END; i++) {
        if (i)
            *to++ = s->separator;
        to = put_value(to, f->values[i], s, ev);
    }
    return to;
}
