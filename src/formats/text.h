// Functions shared by the text formats. They parse and write numbers and words (without using
// locale or errno), read the lines of an import, and parse and write function calls.
#pragma once

#include "base/bytes.h"
#include "formats/import.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { TEXT_EXPORT_LINE = 512 }; // maximum length of a line in any format

// Parsers read at **at and advance *at past the text that they accept. If a parser returns false,
// *at is unchanged. Parsers have no length argument. Instead, the text must end with a newline,
// which no parser accepts, and TEXT_SLACK readable bytes must follow.
enum { TEXT_SLACK = IMPORT_SOURCE_SLACK_BYTES };

static inline bool text_match(const char **at, char c)
{
    if (**at != c)
        return false;
    ++*at;
    return true;
}

// `n` must not exceed TEXT_SLACK.
static inline bool text_match_bytes(const char **at, const char *word, size_t n)
{
    if (memcmp(*at, word, n) != 0)
        return false;
    *at += n;
    return true;
}

#define TEXT_MATCH(at, literal) text_match_bytes(at, literal, sizeof(literal) - 1)

// Returns a word with bit 7 set in each byte whose value is 10 or more. The bytes above the first
// such byte are undefined.
static inline uint64_t text_no_digits(uint64_t values)
{
    return ((values + 0x7676767676767676) | values) & 0x8080808080808080;
}

// Parses up to eight decimal digits. Returns the number of digits. Branchless, because the length
// cannot be predicted.
static inline unsigned text_digits(const char *at, uint64_t *v)
{
    uint64_t d = get_u64(at) ^ 0x3030303030303030, no = text_no_digits(d);
    unsigned n = no ? (unsigned)__builtin_ctzll(no) / 8 : 8;
    // The first digit is in the lowest byte. Pad with leading zeros, then combine pairs, fours and
    // eights.
    d = n ? d << (64 - 8 * n) : 0;
    d = (d * 10 + (d >> 8)) & 0x00ff00ff00ff00ff;
    d = (d * 100 + (d >> 16)) & 0x0000ffff0000ffff;
    *v = (d * 10000 + (d >> 32)) & 0xffffffff;
    return n;
}

// Like text_parse_number, but for numbers of eight or more digits.
bool text_parse_long_number(const char **at, uint64_t *v);

// Parses decimal digits with a value below 2^64.
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

// Returns the value of a hexadecimal digit, or 16 for any other character.
static inline unsigned text_hex_digit(char c)
{
    return text_hex_digits[(unsigned char)c];
}

// Parses hexadecimal digits with a value below 2^64.
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

// Parses "0x" followed by hexadecimal digits.
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

// Parses an address; for use as text_syntax.parse_block.
static inline const char *text_parse_block(const char **at, uint64_t *block)
{
    return text_parse_address(at, block) ? NULL : "an address";
}

// Writers require enough room at `to` and return the end of the text.
static inline char *text_put(char *to, const char *text, size_t n)
{
    memcpy(to, text, n);
    return to + n;
}
#define TEXT_PUT(to, literal) text_put(to, literal, sizeof(literal) - 1)

char *text_decimal(char *to, uint64_t v);     // up to 20 characters
char *text_hex(char *to, uint64_t v);         // up to 16 characters, without 0x
char *text_put_address(char *to, uint64_t v); // 0x and up to 16 characters

struct text_line {
    const char *at;  // next character to parse
    const char *end; // a newline, which replaces the first trailing blank
};

// Reads the next line. Reports a line without a newline (in a truncated file) or, with keep_going,
// skips the line. Returns 1, 0 at the end, or a negative errno.
int text_next(struct import *im, struct text_line *line);

// Reports the text at line->at as invalid. `expected` describes the expected text, for example "a
// size". Returns the same values as import_bad.
int text_bad(struct import *im, const struct text_line *line, const char *expected);

// Values that a call in a line can contain.
enum text_value {
    TEXT_END,
    TEXT_PTR,
    TEXT_RESULT,
    TEXT_SIZE,
    TEXT_COUNT,
    TEXT_ALIGN,
    TEXT_ZERO, // written as 0x0; when reading, any address is accepted
};

struct text_function {
    const char *name; // includes the character that follows the name
    uint8_t length, kind;
    uint8_t values[4]; // enum text_value, in order
};

#define TEXT_FUNCTION(name, kind, ...)                                                             \
    {                                                                                              \
        name, sizeof(name) - 1, kind,                                                              \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

// Syntax of calls, for both reading and writing. Blocks are represented as in struct event.
struct text_syntax {
    const struct text_function *functions; // ends with a row that has no name
    char separator;                        // between values
    const char *expected_function, *expected_separator;
    // Returns NULL, or a description of the expected text.
    const char *(*parse_block)(const char **at, uint64_t *block);
    char *(*put_block)(char *to, uint64_t block);
};

// Parses a function and its values into *ev. Returns NULL, or a description of the text expected at
// `*at`.
const char *text_parse_function(const char **at, const struct text_syntax *s, struct event *ev);

// Writes the name of the function for ev->kind, and the values of the event. The kind must be in
// the table.
char *text_put_function(char *to, const struct text_syntax *s, const struct event *ev);

struct text_call {
    struct event event; // blocks are addresses, or text_slot_address of a slot
    uint64_t pid, tid;
    uint64_t start_ns, end_ns; // valid only if `timed` is set
    bool timed;
};

// Parses the line at `*at`, which must end with a newline at `end` and contain no other newline:
// "<tid>: <function> <values> [<start ns> <end ns>]". Returns NULL with *call filled in, or a
// description of the text expected at `*at`.
const char *text_parse_android(const char **at, const char *end, struct text_call *call);

// Returns an address for a slot of a munged log; slots range from 1 to 2^44 - 1.
static inline uint64_t text_slot_address(uint64_t slot)
{
    return slot << 4;
}

static inline uint64_t text_slot_of(uint64_t address)
{
    return address >> 4;
}
