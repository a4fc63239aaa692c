// Numbers and words read from text, without the C library's locale and errno.
#ifndef HEAPTAPE_FORMATS_TEXT_H
#define HEAPTAPE_FORMATS_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { TEXT_EXPORT_LINE = 512 }; // more than a line of any format takes

// The readers look at **at, take what they want and move *at behind it. The text ends with a byte that none of them takes (a
// newline), so they need no length. False: nothing was taken.

static inline bool text_take(const char **at, char c)
{
    if (**at != c)
        return false;
    ++*at;
    return true;
}

// `word` is of `n` characters.
static inline bool text_take_bytes(const char **at, const char *word, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((*at)[i] != word[i])
            return false;
    }
    *at += n;
    return true;
}

#define TEXT_TAKE(at, literal) text_take_bytes(at, literal, sizeof(literal) - 1)

// Decimal digits, below 2^64.
static inline bool text_take_number(const char **at, uint64_t *v)
{
    const char *p = *at;
    uint64_t n = 0;
    for (; (unsigned char)(*p - '0') < 10; p++) {
        unsigned digit = (unsigned)(*p - '0');
        // 19 digits always fit.
        if (__builtin_expect(p - *at >= 19, 0) && (n > UINT64_MAX / 10 || n * 10 > UINT64_MAX - digit))
            return false;
        n = n * 10 + digit;
    }
    if (p == *at)
        return false;
    *at = p;
    *v = n;
    return true;
}

// The value of a hexadecimal digit; 16 or more when it is none.
static inline unsigned text_hex_digit(char c)
{
    unsigned decimal = (unsigned)(unsigned char)c - '0', letter = (unsigned)((unsigned char)c | 0x20) - 'a';
    return decimal < 10 ? decimal : letter < 6 ? letter + 10 : 16;
}

// Hexadecimal digits, of a value below 2^64.
static inline bool text_take_digits16(const char **at, uint64_t *v)
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
static inline bool text_take_address(const char **at, uint64_t *v)
{
    const char *p = *at;
    if (p[0] != '0' || (p[1] | 0x20) != 'x')
        return false;
    p += 2;
    if (!text_take_digits16(&p, v))
        return false;
    *at = p;
    return true;
}

// What stands at a place, for a message: "'word'", "the end of the line", "byte 0x00".
void text_quote(char quoted[40], const char *at, const char *end);

#endif
