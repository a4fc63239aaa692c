// Numbers for people.
#ifndef HEAPTAPE_CLI_HUMAN_H
#define HEAPTAPE_CLI_HUMAN_H

#include <stdint.h>

// "1.2 GiB", "340 ns", "1 234 567" for tables and sentences, into `text`; return `text`.
char *human_bytes(char text[32], uint64_t bytes);
char *human_ns(char text[32], double ns);
char *human_count(char text[32], uint64_t n);

// "1 event", "2 000 events", into `text`; returns `text`.
char *human_plural(char text[64], uint64_t n, const char *one, const char *many);

#endif
