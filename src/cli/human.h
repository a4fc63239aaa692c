// Numbers for people.
#ifndef HEAPTAPE_CLI_HUMAN_H
#define HEAPTAPE_CLI_HUMAN_H

#include <stdbool.h>
#include <stdint.h>

// "1.2 GiB", "340 ns", "1 234 567" for tables and sentences, into `text`; return `text`.
char *human_bytes(char text[32], uint64_t bytes);
char *human_ns(char text[32], double ns);
char *human_count(char text[32], uint64_t n);

// Microseconds are "us" then: for terminals without UTF-8. Set before anything is printed.
extern bool human_ascii;

// "1 event", "2 000 events", into `text`; returns `text`.
char *human_plural(char text[64], uint64_t n, const char *one, const char *many);

#endif
