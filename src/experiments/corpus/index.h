// The index of a corpus: its workloads, their programs, and the machines on which they were
// recorded.
//
// The index is a JSON file (docs/reference/json/corpus.schema.json). A new version is written to a
// temporary file and renamed, so the index is valid at any time.
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// Keys of an entry: X(member, 1 if the key is in "machine", else 0). If a program has not been
// recorded, its entry has only name, program and licence; the other keys are null.
#define CORPUS_TEXTS(X)                                                                            \
    X(name, 0)                                                                                     \
    X(program, 0)                                                                                  \
    X(version, 0)                                                                                  \
    X(licence, 0)                                                                                  \
    X(sha256, 0)                                                                                   \
    X(architecture, 1)                                                                             \
    X(cpu_model, 1)                                                                                \
    X(cpu_governor, 1)                                                                             \
    X(transparent_hugepages, 1)
#define CORPUS_NUMBERS(X)                                                                          \
    X(size_percent, 0)                                                                             \
    X(events, 0)                                                                                   \
    X(threads, 0)                                                                                  \
    X(peak_live_bytes, 0)                                                                          \
    X(peak_recorded_rss_bytes, 0)                                                                  \
    X(duration_ns, 0)                                                                              \
    X(file_bytes, 0)                                                                               \
    X(cores, 1)                                                                                    \
    X(memory_bytes, 1)                                                                             \
    X(page_bytes, 1)

struct corpus_entry {
#define CORPUS_TEXT(member, in_machine)   char *member;    // owned; NULL if not known
#define CORPUS_NUMBER(member, in_machine) uint64_t member; // UINT64_MAX if not known
    CORPUS_TEXTS(CORPUS_TEXT)
    CORPUS_NUMBERS(CORPUS_NUMBER)
#undef CORPUS_TEXT
#undef CORPUS_NUMBER
};

// An index. If all members are zero, the index is empty.
struct corpus_index {
    struct corpus_entry *entries; // sorted by name
    size_t n, capacity;
};

void corpus_entry_release(struct corpus_entry *entry);
void corpus_index_release(struct corpus_index *x);

// Reads the file into *x, which must be empty. Returns 0, -ENOENT if the file does not exist,
// -EBADMSG or -ENODATA for an invalid index (the message names the byte or the entry), or another
// negative errno, with the message set.
int corpus_index_read(struct corpus_index *x, const char *path, struct err *e);

// Moves *entry into the index. Replaces an entry with the same name. Returns 0 or -ENOMEM.
int corpus_index_put(struct corpus_index *x, struct corpus_entry *entry);

// Returns the entry with this name, or NULL.
const struct corpus_entry *corpus_index_find(const struct corpus_index *x, const char *name);

// Returns true if `name` is one of the n names, or if n is 0.
bool corpus_index_wants(const char *const *names, size_t n, const char *name);

// Writes the document with the selected entries.
void corpus_index_print(const struct corpus_index *x, const char *const *names, size_t n, FILE *to);

// Writes the document to a file. Returns 0, or a negative errno with the message set.
int corpus_index_write(const struct corpus_index *x, const char *path, struct err *e);
