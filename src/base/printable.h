// Text from files, for terminals and for formats of text: names of programs, threads, functions and files, marks.
//
// Written as \xNN: control characters, also those from U+0080 to U+009F, characters that change the direction of the text
// around them, and bytes that are no UTF-8. All else stays as it is.
#ifndef HEAPTAPE_BASE_PRINTABLE_H
#define HEAPTAPE_BASE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

// Length of the well-formed UTF-8 sequence at `text` (RFC 3629), 0 when there is none; n > 0.
size_t printable_utf8(const char *text, size_t n);

// Length of the character at `text` if it may be written as it is, else 0; n > 0.
size_t printable_length(const char *text, size_t n);

// Writes as much as fits into `room` > 0 bytes, and a NUL. The length.
size_t printable_copy(char *to, size_t room, const char *text, size_t n);

// Returns how many of the first `max` bytes of the text end with a whole character.
size_t printable_cut(const char *text, size_t max);

void printable_print(FILE *to, const char *text, size_t n);

// A copy for the caller to free; NULL when out of memory.
char *printable_new(const char *text);

#endif
