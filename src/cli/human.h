// Formats numbers for readers.
#ifndef HEAPTAPE_CLI_HUMAN_H
#define HEAPTAPE_CLI_HUMAN_H

#include <stdbool.h>
#include <stdint.h>

// Write "1.2 GiB", "340 ns" or "1 234 567" into `text` and return `text`.
char *human_bytes(char text[32], uint64_t bytes);
char *human_ns(char text[32], double ns);
char *human_count(char text[32], uint64_t n);
char *human_count_with(char text[32], uint64_t n, char separator); // between groups of 3 digits

// Format a number as above: "1.2 GiB", "340 ns", "1 234 567", and "1 event" or "2 000 events". The
// result is valid for the next 15 calls of these functions in the same thread.
const char *human_size(uint64_t bytes);
const char *human_time(double ns);
const char *human_number(uint64_t n);
const char *human_items(uint64_t n, const char *one, const char *many);

// Returns a buffer for a formatted number, which is valid like the results above.
enum { HUMAN_BYTES = 64 };
char *human_buffer(void);

// If set, microseconds are printed as "us", for terminals without UTF-8. Set before the first
// output.
extern bool human_ascii;

// Writes "1 event" or "2 000 events" into `text` and returns `text`.
char *human_plural(char text[64], uint64_t n, const char *one, const char *many);

#endif
