// What the loader knows of the objects of this process: their symbols, and the places where it has put the addresses of the
// functions that they call. Reads mapped memory alone, and allocates nothing.
#ifndef HEAPTAPE_LIBC_OBJECTS_H
#define HEAPTAPE_LIBC_OBJECTS_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Valid while the object is loaded: in a callback of dl_iterate_phdr.
struct object {
    const char *path; // "": the main program
    uintptr_t base, start, end;
    uintptr_t relro_start, relro_end; // made read-only after relocation
    const ElfW(Phdr) * segments;
    size_t n_segments;
    const ElfW(Sym) * symbols; // NULL: it has no dynamic symbols
    const char *strings;
    size_t string_bytes;
    const uint32_t *gnu_hash;
    const ElfW(Half) * versions;
    const ElfW(Rela) * relocations[2]; // of the procedure linkage table, and the others
    size_t relocation_bytes[2];
};

// Reads the object that a callback of dl_iterate_phdr is told of: what stands before `symbols`, or all.
void object_read_segments(struct object *o, const struct dl_phdr_info *info);
void object_read(struct object *o, const struct dl_phdr_info *info);

// Is all of it in a segment of the object that can be read?
bool object_has(const struct object *o, const void *at, size_t bytes);

// The function of that name that the object defines, in its default version if there are several; NULL: none.
void *object_function(const struct object *o, const char *name);

// Calls `visit` for each place that holds the address of a function or variable of another object, by name.
void object_each_slot(const struct object *o,
                      void (*visit)(const struct object *o, const char *name, uintptr_t *slot,
                                    void *context),
                      void *context);

// The function of that name in the first object, in the order in which they were loaded, that defines it; `except`: an address
// in an object that is left out. dlsym(RTLD_DEFAULT) returns an executable's own stub where that is not
// position-independent. NULL: none.
void *objects_function(const char *name, const void *except);

#endif
