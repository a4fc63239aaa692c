// Call sites of a workload: return addresses, and the executable mappings that contain them.
// Layout: docs/reference/workload-format.md, "SITES".
#pragma once

#include "trace/names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// An executable mapping of `bytes` bytes at `start`, which maps a file from `offset` on.
struct workload_module {
    uint64_t start, bytes, offset;
    char *build_id; // hexadecimal, or ""
    char *path;     // "" for code without a file
};

struct workload_frame {
    uint64_t address; // return address
    uint32_t module;  // number of the module plus 1, or 0 if unknown
};

struct workload_site {
    size_t first; // index in frames
    uint32_t n;   // 0 if the site is undefined
};

// A struct of zeros has no sites. Sites are numbered from 1.
struct workload_sites {
    struct workload_module *modules;
    struct workload_frame *frames;
    struct workload_site *sites; // sites[i] is site number i + 1
    struct names names;          // names of addresses in the sites, if known
    size_t n_modules, n_frames, n_sites;
    size_t modules_capacity, frames_capacity, sites_capacity;
};

void workload_sites_release(struct workload_sites *s);

// Appends a module. `text` has the same form as the text of an HT_MODULE record: build ID, space,
// path. Returns 0 or -ENOMEM.
int workload_sites_module(struct workload_sites *s, const struct workload_module *where,
                          const char *text, size_t n);

// Defines a site from the `n` addresses in `text`. An address has 8 bytes, as in HT_STACK. Each
// address belongs to the most recent module that contains it. A second definition of a site is
// ignored. Returns 0 or -ENOMEM.
int workload_sites_define(struct workload_sites *s, uint32_t number, const char *text, uint32_t n);

// Returns a frame with the address and the most recent module that contains the address.
struct workload_frame workload_sites_locate(const struct workload_sites *s, uint64_t address);

// Like workload_sites_define, but with n ≥ 1 frames instead of addresses.
int workload_sites_set(struct workload_sites *s, uint32_t number,
                       const struct workload_frame *frames, uint32_t n);

// workload_sites_copy defines site `number` as a copy of site `from_number` of another set, and
// adds `shift` to the module numbers of its frames. After copying sites, call
// workload_sites_copy_modules to append the modules of the other set. Both functions return 0 or
// -ENOMEM.
int workload_sites_copy(struct workload_sites *s, uint32_t number,
                        const struct workload_sites *from, uint32_t from_number, uint32_t shift);
int workload_sites_copy_modules(struct workload_sites *s, const struct workload_sites *from);

// Copies all sites and modules to an empty set.
int workload_sites_copy_all(struct workload_sites *s, const struct workload_sites *from);

// Returns the name of the frame from an index of the names, or NULL.
const struct names_entry *workload_sites_name(const struct names_index *x,
                                              const struct workload_frame *f);

// Like workload_sites_name, but ignores the module. Used for code that was generated at run time.
const struct names_entry *workload_sites_made_name(const struct names_index *x,
                                                   const struct workload_frame *f);

// Returns a unique key for the module and address. User-space addresses are below 2^47.
static inline uint64_t workload_sites_key(const struct workload_frame *f)
{
    return f->address ^ (uint64_t)f->module << 47;
}

// Returns true if the frame is in code that has no file.
bool workload_sites_is_made(const struct workload_sites *s, const struct workload_frame *f);

// Copies the names of all frames in the sites to `to`. Omits all other names of a trace. Returns 0
// or -ENOMEM.
int workload_sites_used_names(const struct workload_sites *s, struct names *to);

// Appends a frame payload with the modules from *module on and the sites from *site on, up to
// WORKLOAD_SITES_BYTES, and advances both. Returns 0 or -ENOMEM.
enum { WORKLOAD_SITES_BYTES = 4 << 20 };
int workload_sites_put(struct buf *b, const struct workload_sites *s, size_t *module, size_t *site);

// Decodes a payload and appends its modules and sites. Returns 0, -EBADMSG or -ENOMEM.
int workload_sites_get(const uint8_t *at, size_t n, struct workload_sites *s);
