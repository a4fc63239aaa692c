// Which functions the code at an address belongs to, inlined ones too, by a file's debugging information. Its own index,
// since libdw finds units by .debug_aranges alone, which clang and rustc do not write, and its dwarf_getscopes fails where
// a function was inlined from another unit or into a part that was split off.
#ifndef HEAPTAPE_DEBUG_DEBUG_INFO_H
#define HEAPTAPE_DEBUG_DEBUG_INFO_H

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stddef.h>
#include <stdint.h>

struct debug_info;

// Reads nothing yet; the file is borrowed. NULL when out of memory.
struct debug_info *debug_info_new(Dwfl_Module *file);
void debug_info_free(struct debug_info *d);

// The unit of the address's source, NULL if none is known, the address as the file has it, and the
// functions, the innermost first: all but the last were inlined into the next one.
struct debug_info_place {
    Dwarf_Die *unit;
    uint64_t address;
    size_t n;
    Dwarf_Die functions[64];
};

// Of an address in the process.
void debug_info_find(struct debug_info *d, uint64_t address, struct debug_info_place *place);

// The name of the symbol that an address in the process lies in; NULL if there is none. libdw's dwfl_module_addrinfo reads all
// symbols for each address.
const char *debug_info_symbol(struct debug_info *d, uint64_t address);

#endif
