// Finds the functions at a code address, including inlined functions, in a file's debugging
// information. An index is needed, because libdw finds units only through .debug_aranges, which
// clang and rustc do not write. Furthermore, dwarf_getscopes fails for functions that were inlined
// from another unit or into a split unit.
#pragma once

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stddef.h>
#include <stdint.h>

struct debug_info;

// Creates an index, but does not read anything yet. The file is borrowed. Returns NULL when out of
// memory.
struct debug_info *debug_info_new(Dwfl_Module *file);
void debug_info_free(struct debug_info *d);

// The code at an address. `unit` is NULL if unknown. `address` is the address in the file. The
// innermost function comes first; each function is inlined into the function after it.
struct debug_info_place {
    Dwarf_Die *unit;
    uint64_t address;
    size_t n;
    Dwarf_Die functions[64];
};

// Looks up an address of the process.
void debug_info_find(struct debug_info *d, uint64_t address, struct debug_info_place *place);

// Returns the symbol that contains an address of the process, or NULL. Sets *bytes to the size of
// the symbol, or to 0 if unknown. Replaces dwfl_module_addrinfo of libdw, which reads all symbols
// on every lookup.
const char *debug_info_symbol(struct debug_info *d, uint64_t address, uint64_t *bytes);
