// Call sites of a workload: return addresses, and the pieces of executable files that they lie in. Layout:
// docs/reference/workload-format.md, "SITES".
#ifndef HEAPTAPE_WORKLOAD_SITES_H
#define HEAPTAPE_WORKLOAD_SITES_H

#include "trace/names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Executable memory as the program had it mapped: `bytes` from `start`, from `offset` of a file on.
struct workload_module {
    uint64_t start, bytes, offset;
    char *build_id; // in hexadecimal digits, "" when the file has none
    char *path;     // "" for code without a file
};

struct workload_frame {
    uint64_t address; // where the call returns to
    uint32_t module;  // number of its module + 1, 0 when it lay in none
};

struct workload_site {
    size_t first; // in frames
    uint32_t n;   // 0: not defined
};

// All zero is an empty set. Sites are numbered from 1.
struct workload_sites {
    struct workload_module *modules;
    struct workload_frame *frames;
    struct workload_site *sites; // of number i + 1
    struct names names;          // of addresses, where the file has some
    size_t n_modules, n_frames, n_sites;
    size_t modules_capacity, frames_capacity, sites_capacity;
};

void workload_sites_release(struct workload_sites *s);

// Adds a module; `text` is as HT_MODULE has it: build id, a space, path. 0 or -ENOMEM.
int workload_sites_module(struct workload_sites *s, const struct workload_module *where,
                          const char *text, size_t n);

// Says what a site is: `n` addresses of 8 bytes at `text`, as HT_STACK has them. The modules known so far are searched,
// the last one first. A second definition is ignored. 0 or -ENOMEM.
int workload_sites_define(struct workload_sites *s, uint32_t number, const char *text, uint32_t n);

// The address, with the last module of those known so far that it lies in.
struct workload_frame workload_sites_locate(const struct workload_sites *s, uint64_t address);

// The same definition from frames, n ≥ 1.
int workload_sites_set(struct workload_sites *s, uint32_t number,
                       const struct workload_frame *frames, uint32_t n);

// Defines site `number` as another set's site `from_number`, whose modules come `shift` numbers later here; then, once,
// takes over that set's modules. 0 or -ENOMEM.
int workload_sites_copy(struct workload_sites *s, uint32_t number,
                        const struct workload_sites *from, uint32_t from_number, uint32_t shift);
int workload_sites_copy_modules(struct workload_sites *s, const struct workload_sites *from);

// Both for all sites, into an empty set.
int workload_sites_copy_all(struct workload_sites *s, const struct workload_sites *from);

// The name that the file itself has for a frame, in an index of its names. NULL: there is none.
const struct names_entry *workload_sites_name(const struct names_index *x,
                                              const struct workload_frame *f);

// The name that it has for what lay there, in whatever module: for code that a compiler made while the program ran.
const struct names_entry *workload_sites_made_name(const struct names_index *x,
                                                   const struct workload_frame *f);

// A number of its own for each pair of module and address: addresses of programs are below 2^47.
static inline uint64_t workload_sites_key(const struct workload_frame *f)
{
    return f->address ^ (uint64_t)f->module << 47;
}

// Does the frame lie in code that no file holds?
bool workload_sites_is_made(const struct workload_sites *s, const struct workload_frame *f);

// Adds the names that frames have to `to`, each under the address of its frame: of what a trace knows of a process's memory
// that is as much as is needed. 0 or -ENOMEM.
int workload_sites_used_names(const struct workload_sites *s, struct names *to);

// Appends the payload of a frame: the modules from number *module on and the sites from number *site on, as much as fits
// WORKLOAD_SITES_BYTES, and moves both on. 0 or -ENOMEM.
enum { WORKLOAD_SITES_BYTES = 4 << 20 };
int workload_sites_put(struct buf *b, const struct workload_sites *s, size_t *module, size_t *site);

// Adds what a frame holds. 0, -EBADMSG, -ENOMEM.
int workload_sites_get(const uint8_t *at, size_t n, struct workload_sites *s);

#endif
