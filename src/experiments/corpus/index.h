// The index of a corpus: which workloads it has, of what they are, and where they were recorded.
//
// A JSON file, docs/reference/json/corpus.schema.json. It is written whole, aside, so that it is valid at any time.
#ifndef HEAPTAPE_CORPUS_INDEX_H
#define HEAPTAPE_CORPUS_INDEX_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// X(member, in "machine"): the keys of an entry. Texts may be null only in the machine, and there all of them.
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
#define CORPUS_TEXT(member, in_machine)   char *member;    // owned; NULL: not known
#define CORPUS_NUMBER(member, in_machine) uint64_t member; // UINT64_MAX: not known
    CORPUS_TEXTS(CORPUS_TEXT)
    CORPUS_NUMBERS(CORPUS_NUMBER)
#undef CORPUS_TEXT
#undef CORPUS_NUMBER
};

// All zero is an empty one.
struct corpus_index {
    struct corpus_entry *entries; // sorted by name
    size_t n, capacity;
};

void corpus_entry_release(struct corpus_entry *entry);
void corpus_index_release(struct corpus_index *x);

// Reads the file into the empty *x. 0, -ENOENT where there is none, -EBADMSG or -ENODATA where it is no index (the text says at
// which byte or in which entry), another negative errno; the text is set.
int corpus_index_read(struct corpus_index *x, const char *path, struct err *e);

// Replaces the entry of the same name, or adds it; *entry is moved. 0 or -ENOMEM.
int corpus_index_put(struct corpus_index *x, struct corpus_entry *entry);

// NULL: there is none.
const struct corpus_entry *corpus_index_find(const struct corpus_index *x, const char *name);

// Is `name` one of the `n` names, or n 0, which stands for all?
bool corpus_index_wants(const char *const *names, size_t n, const char *name);

// The document, of the `n` names alone unless n is 0.
void corpus_index_print(const struct corpus_index *x, const char *const *names, size_t n, FILE *to);

// The document into a file. 0 or a negative errno with the text set.
int corpus_index_write(const struct corpus_index *x, const char *path, struct err *e);

#endif
