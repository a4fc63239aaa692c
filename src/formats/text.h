// What the text formats share: numbers and words read and written without the C library's locale and errno, lines of an
// import, and the calls that stand on them.
#ifndef HEAPTAPE_FORMATS_TEXT_H
#define HEAPTAPE_FORMATS_TEXT_H

#include "base/bytes.h"
#include "formats/import.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { TEXT_EXPORT_LINE = 512 }; // more than a line of any format has

// The readers look at **at and move *at behind what they match or parse. The text ends with a byte that none of them accepts
// (a newline), so they need no length; TEXT_SLACK bytes behind it can be read. False: *at has not moved.
enum { TEXT_SLACK = IMPORT_SOURCE_SLACK_BYTES };

static inline bool text_match(const char **at, char c)
{
    if (**at != c)
        return false;
    ++*at;
    return true;
}

// `word` is of `n` <= TEXT_SLACK characters.
static inline bool text_match_bytes(const char **at, const char *word, size_t n)
{
    if (memcmp(*at, word, n) != 0)
        return false;
    *at += n;
    return true;
}

#define TEXT_MATCH(at, literal) text_match_bytes(at, literal, sizeof(literal) - 1)

// 0x80 in each byte that is 10 or more; the bytes above the first of them mean nothing.
static inline uint64_t text_no_digits(uint64_t values)
{
    return ((values + 0x7676767676767676) | values) & 0x8080808080808080;
}

// How many of the next eight characters are decimal digits in a row, and their value; without a branch, because lengths
// of numbers cannot be foretold.
static inline unsigned text_digits(const char *at, uint64_t *v)
{
    uint64_t d = get_u64(at) ^ 0x3030303030303030, no = text_no_digits(d);
    unsigned n = no ? (unsigned)__builtin_ctzll(no) / 8 : 8;
    // The first digit stands lowest: zeros go before it. Then pairs, fours and eight are joined.
    d = n ? d << (64 - 8 * n) : 0;
    d = (d * 10 + (d >> 8)) & 0x00ff00ff00ff00ff;
    d = (d * 100 + (d >> 16)) & 0x0000ffff0000ffff;
    *v = (d * 10000 + (d >> 32)) & 0xffffffff;
    return n;
}

// As text_parse_number, of a number of any length.
bool text_parse_long_number(const char **at, uint64_t *v);

// Decimal digits, below 2^64.
static inline bool text_parse_number(const char **at, uint64_t *v)
{
    uint64_t value;
    unsigned n = text_digits(*at, &value);
    if (__builtin_expect(n == 8, 0))
        return text_parse_long_number(at, v);
    if (!n)
        return false;
    *at += n;
    *v = value;
    return true;
}

extern const uint8_t text_hex_digits[256];

// The value of a hexadecimal digit; 16 or more when it is none.
static inline unsigned text_hex_digit(char c)
{
    return text_hex_digits[(unsigned char)c];
}

// Hexadecimal digits, of a value below 2^64.
static inline bool text_parse_hex(const char **at, uint64_t *v)
{
    const char *p = *at;
    uint64_t n = 0;
    for (unsigned digit; (digit = text_hex_digit(*p)) < 16; p++) {
        if (n >> 60)
            return false;
        n = n << 4 | digit;
    }
    if (p == *at)
        return false;
    *at = p;
    *v = n;
    return true;
}

// "0x" and hexadecimal digits.
static inline bool text_parse_address(const char **at, uint64_t *v)
{
    const char *p = *at;
    if (p[0] != '0' || (p[1] | 0x20) != 'x')
        return false;
    p += 2;
    if (!text_parse_hex(&p, v))
        return false;
    *at = p;
    return true;
}

// The same as a block of struct text_syntax.
static inline const char *text_parse_block(const char **at, uint64_t *block)
{
    return text_parse_address(at, block) ? NULL : "an address";
}

// The writers need enough space at `to`; they return where the text ends.
static inline char *text_put(char *to, const char *text, size_t n)
{
    memcpy(to, text, n);
    return to + n;
}
#define TEXT_PUT(to, literal) text_put(to, literal, sizeof(literal) - 1)

char *text_decimal(char *to, uint64_t v);     // ≤ 20 characters
char *text_hex(char *to, uint64_t v);         // ≤ 16, without 0x
char *text_put_address(char *to, uint64_t v); // "0x" and hexadecimal digits

struct text_line {
    const char *at;  // what comes next: parsers move it
    const char *end; // a newline, which replaces the first trailing blank: parsers stop there
};

// The next line: 1; 0 at the end; negative errno. One without a newline is reported or skipped: the file is cut off there.
int text_next(struct import *im, struct text_line *line);

// The line had something else than `expected` at line->at. As import_bad.
int text_bad(struct import *im, const struct text_line *line, const char *expected);

// What a call on a line consists of, in order.
enum text_value {
    TEXT_END,
    TEXT_PTR,
    TEXT_RESULT,
    TEXT_SIZE,
    TEXT_COUNT,
    TEXT_ALIGN,
    TEXT_ZERO, // 0x0, or any address when read
};

struct text_function {
    const char *name; // and the character after it
    uint8_t length, kind;
    uint8_t values[4]; // enum text_value
};

#define TEXT_FUNCTION(name, kind, ...)                                                             \
    {                                                                                              \
        name, sizeof(name) - 1, kind,                                                              \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

// The table of functions by which calls are read and written. Blocks are those of struct event.
struct text_syntax {
    const struct text_function *functions; // ended by a row without a name
    char separator;                        // between values
    const char *expected_function, *expected_separator;
    const char *(*parse_block)(const char **at, uint64_t *block); // NULL, or what was expected
    char *(*put_block)(char *to, uint64_t block);
};

// Reads a function and its values into *ev. NULL, or what was expected at `*at`.
const char *text_parse_function(const char **at, const struct text_syntax *s, struct event *ev);

// Writes the function of ev->kind, which must be in the table, and its values.
char *text_put_function(char *to, const struct text_syntax *s, const struct event *ev);

struct text_call {
    struct event event; // blocks by their addresses, or by text_slot_address of their slots
    uint64_t pid, tid;
    uint64_t start_ns, end_ns; // when `timed`
    bool timed;
};

// Each understands the line at `*at`, which ends with a newline at `end` and holds nothing else that is one. NULL, and
// *call is filled in; or what was expected at `*at`, which has moved there ("a size").

// <tid>: <function> <values> [<start ns> <end ns>]
const char *text_parse_android(const char **at, const char *end, struct text_call *call);

// Slots of a munged log stand for addresses: any number from 1 up to 2^44.
static inline uint64_t text_slot_address(uint64_t slot)
{
    return slot << 4;
}

static inline uint64_t text_slot_of(uint64_t address)
{
    return address >> 4;
}

#endif
