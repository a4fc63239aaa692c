// Escapes text from files (marks, and names of programs, threads, functions and files) for
// terminals and text formats.
//
// Three kinds of bytes are written as \xNN: control characters (including U+0080 to U+009F),
// characters that change the direction of text, and bytes that are not UTF-8. All other characters
// are unchanged.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

// Returns the length of the well-formed UTF-8 sequence at `text` (RFC 3629), or 0. Requires n > 0.
size_t printable_utf8(const char *text, size_t n);

// Returns the length of the character at `text`, or 0 if the character must be escaped. Requires n
// > 0.
size_t printable_length(const char *text, size_t n);

// Writes the escaped text, truncated to `room` > 0 bytes including the NUL. Returns the length.
size_t printable_copy(char *to, size_t room, const char *text, size_t n);

// Returns the largest length, up to `max`, at which `text` can be cut without splitting a
// character.
size_t printable_cut(const char *text, size_t max);

// Joins the NUL-terminated arguments of a command line with spaces. Replaces everything after `max`
// bytes with "...". `to` must have space for max + sizeof "..." bytes.
void printable_words(char *to, size_t max, const char *arguments, size_t bytes);

void printable_print(FILE *to, const char *text, size_t n);

// Returns an escaped copy, which the caller frees, or NULL if out of memory.
char *printable_new(const char *text);
