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

// If set, microseconds are printed as "us", for terminals without UTF-8. Set before the first
// output.
extern bool human_ascii;

// Writes "1 event" or "2 000 events" into `text` and returns `text`.
char *human_plural(char text[64], uint64_t n, const char *one, const char *many);

#endif
