// Checks the files that libdw finds by names in other files: separate and shared debug files
// (.gnu_debuglink, .gnu_debugaltlink, build IDs) and split units (.dwo). libdw opens and
// decompresses any file with such a name; these functions refuse files that are not regular or grow
// out of proportion when decompressed.
#ifndef HEAPTAPE_DEBUG_DEBUG_FILES_H
#define HEAPTAPE_DEBUG_DEBUG_FILES_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>

// Opens an ELF file. Returns the descriptor, or -1 if the file is missing or refused.
int debug_files_open(const char *path);

// Sets the folders, separated by colons, that are searched besides those of the system; NULL
// removes them. Returns 0 or -ENOMEM.
int debug_files_set_folders(const char *folders);

// These folders as absolute paths, and all searched folders as the debuginfo_path of a Dwfl.
extern const char *debug_files_folders;
extern char *debug_files_path;

// First file refused in this thread, or "".
extern _Thread_local char debug_files_refused[];

// The find_debuginfo callback of a Dwfl whose debuginfo_path is debug_files_path. Sets the module's
// user data if libdw must read nothing more of the module, because it would look for a refused file
// again.
int debug_files_find(Dwfl_Module *module, void **user_data, const char *name, Dwarf_Addr base,
                     const char *file, const char *link, GElf_Word crc, char **found);

// Returns false if a file with this suffix that libdw may open by the build ID would be refused.
bool debug_files_id_is_safe(const uint8_t *id, size_t n, const char *ending);

// Returns false if the split half of the unit would be a refused file.
bool debug_files_unit_is_safe(Dwfl_Module *module, Dwarf_Die *unit);

#endif
