// An ELF object of this machine, read from its file or from the memory of a process. The object is
// untrusted, so the sizes of tables are limited to IMAGE_MAX_TABLE, and reads outside a segment
// fail.
#pragma once

#include "base/buf.h"
#include "record/entries/plan.h"

#include <elf.h>

enum {
    IMAGE_MAX_SEGMENTS = 64,
    IMAGE_MAX_TABLE = 256 << 20, // maximum bytes of a table of symbols or strings
};

struct entries_image {
    const struct entries_object *object;
    Elf64_Ehdr header;
    Elf64_Phdr segments[IMAGE_MAX_SEGMENTS]; // PT_LOAD and PT_DYNAMIC
    unsigned n_segments;
    uint64_t start, end; // virtual addresses of the PT_LOAD segments
    uint64_t base;       // added to virtual addresses in the process
};

// Symbols and their names. Initialize with zeros. The caller must release both buffers.
struct image_symbols {
    struct buf symbols, names; // Elf64_Sym; a 0 byte follows `names`
};

// Opens an object. Returns 0, -ENOEXEC if it is not an ELF object of this machine, or another
// negative errno. The image does not need to be closed.
int image_open(struct entries_image *i, const struct entries_object *object, struct err *e);

// Returns the executable PT_LOAD segment that contains the address, or NULL.
const Elf64_Phdr *image_code_at(const struct entries_image *i, uint64_t address);

// Reads up to n bytes of the segment that contains the virtual address. Returns the number of bytes
// read, which is less than n at the end of the segment's contents.
size_t image_read(const struct entries_image *i, uint64_t address, void *to, size_t n);

// Reads the dynamic symbols through the loader's tables. Returns 0, or -ENOMEM. If the tables are
// invalid, reads no symbols and returns 0.
int image_read_dynamic(const struct entries_image *i, struct image_symbols *to);

// Reads the symbols listed by the section headers of a file, which may be the object's own file or
// its debug file. Returns 0, or -ENOMEM. If the table is invalid, reads no symbols and returns 0.
int image_read_static(int file, struct image_symbols *to);

// Opens the object's separate debug file: by build ID in /usr/lib/debug, by the name in
// .gnu_debuglink next to the object, or by build ID in the cache of debuginfod's client. The debug
// file must have the object's build ID. Returns a descriptor, or -1.
int image_open_debug(const struct entries_image *i);

// Returns the name of a symbol, or NULL if its offset is outside `names`.
const char *image_name(const struct image_symbols *s, const Elf64_Sym *symbol);

// Releases the buffers.
void image_symbols_release(struct image_symbols *s);
