// Formats numbers for readers.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Return a number as text: "1.2 GiB", "340 ns", "1 234 567", and "1 event" or "2 000 events". Each
// text is in one of 16 buffers per thread, which are used in turn. human_items uses two buffers.
const char *human_size(uint64_t bytes);
const char *human_time(double ns);
const char *human_number(uint64_t n);
const char *human_items(uint64_t n, const char *one, const char *many);

// Like human_number, with another separator between groups of 3 digits.
const char *human_digits(uint64_t n, char separator);

// Returns the next of the 16 buffers.
enum { HUMAN_BYTES = 64 };
char *human_buffer(void);

// If set, microseconds are printed as "us", for terminals without UTF-8. Set before the first
// output.
extern bool human_ascii;
