// Finds the functions at a code address, including inlined ones, from a file's debugging
// information. Builds its own index, because libdw finds units only through .debug_aranges, which
// clang and rustc do not write, and because dwarf_getscopes fails for functions inlined from
// another unit or into a split unit.
#ifndef HEAPTAPE_DEBUG_DEBUG_INFO_H
#define HEAPTAPE_DEBUG_DEBUG_INFO_H

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stddef.h>
#include <stdint.h>

struct debug_info;

// Borrows the file; does not read anything yet. Returns NULL when out of memory.
struct debug_info *debug_info_new(Dwfl_Module *file);
void debug_info_free(struct debug_info *d);

// unit: NULL if unknown. address: as in the file. functions: innermost first; each is inlined into
// the one after it.
struct debug_info_place {
    Dwarf_Die *unit;
    uint64_t address;
    size_t n;
    Dwarf_Die functions[64];
};

// Looks up an address of the process.
void debug_info_find(struct debug_info *d, uint64_t address, struct debug_info_place *place);

// Returns the symbol that contains an address of the process, or NULL, and sets *bytes to its size,
// or to 0 if unknown. Replaces libdw's dwfl_module_addrinfo, which reads all symbols on every
// lookup.
const char *debug_info_symbol(struct debug_info *d, uint64_t address, uint64_t *bytes);

#endif
