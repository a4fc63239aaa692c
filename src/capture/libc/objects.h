// Finds the symbols of the objects loaded into this process, and the slots where the loader stored
// the addresses of other objects' functions. Reads only mapped memory, and does not allocate.
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Valid while the object is loaded, so use it only inside objects_visit.
struct object {
    const char *path;                  // "" for the main program
    unsigned long long loads, unloads; // the loader's counters
    uintptr_t base, start, end;
    uintptr_t relro_start, relro_end; // whole pages are read-only after relocation
    const ElfW(Phdr) * segments;
    size_t n_segments;
    const ElfW(Sym) * symbols; // NULL if the object has no dynamic symbols
    const char *strings;
    size_t string_bytes;
    const uint32_t *gnu_hash, *hash; // hash tables, of which an object may have only one
    const ElfW(Half) * versions;
    // [0]: slots of the procedure linkage table; [1]: all other slots
    const ElfW(Rela) * relocations[2];
    size_t relocation_bytes[2];
};

// Fills in *o from the argument of a dl_iterate_phdr callback.
void object_read(struct object *o, const struct dl_phdr_info *info);

// Calls `visit` for each loaded object, in load order, until it returns true. Returns true if
// `visit` did. Holds a lock of the loader.
bool objects_visit(bool (*visit)(const struct object *o, void *context), void *context);

// Returns true if the address lies between the first and the last segment of the object.
static inline bool object_spans(const struct object *o, uintptr_t at)
{
    return at >= o->start && at < o->end;
}

// Returns true if [at, at + bytes) lies in one readable segment of the object.
bool object_contains(const struct object *o, const void *at, size_t bytes);

// Returns the object's definition of the function `name`, or NULL. If the object has several
// versions of the function, returns the default version.
void *object_find_function(const struct object *o, const char *name);

// Like object_find_function, for a variable.
void *object_find_variable(const struct object *o, const char *name);

// Calls `visit` for each slot that holds the address of another object's function or variable.
void object_each_slot(const struct object *o,
                      void (*visit)(const struct object *o, const char *name, uintptr_t *slot,
                                    void *context),
                      void *context);
