// Files with debugging information that libdw finds by names in other files: separate and shared ones (.gnu_debuglink,
// .gnu_debugaltlink, build IDs) and split units (.dwo). libdw opens and decompresses whatever has such a name. These
// functions refuse files that are not regular and files that grow out of proportion when decompressed.
#ifndef HEAPTAPE_DEBUG_DEBUG_FILES_H
#define HEAPTAPE_DEBUG_DEBUG_FILES_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>

// Opens an ELF file. Returns the descriptor, or -1 if the file is missing or refused.
int debug_files_open(const char *path);

// Sets the folders that are searched besides the system's, separated by colons; NULL removes them. Returns 0 or -ENOMEM.
int debug_files_set_folders(const char *folders);

// These folders as absolute ones, and all that are searched, as the debuginfo_path of a Dwfl.
extern const char *debug_files_folders;
extern char *debug_files_path;

// The first file that this thread was refused, "" if none was.
extern _Thread_local char debug_files_refused[];

// The find_debuginfo of a Dwfl whose debuginfo_path is debug_files_path. Sets the module's user data if libdw must read
// nothing else of the module: it would look for a refused file once more.
int debug_files_find(Dwfl_Module *module, void **user_data, const char *name, Dwarf_Addr base,
                     const char *file, const char *link, GElf_Word crc, char **found);

// Returns true unless a file that libdw may open by the build ID, with this ending, would be refused.
bool debug_files_id_is_safe(const uint8_t *id, size_t n, const char *ending);

// Returns true unless the split half of the unit would be a refused file.
bool debug_files_unit_is_safe(Dwfl_Module *module, Dwarf_Die *unit);

#endif
