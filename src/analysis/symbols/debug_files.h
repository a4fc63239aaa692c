// Checks the files that libdw finds by names stored in other files: separate and shared debug files
// (.gnu_debuglink, .gnu_debugaltlink, build IDs) and split units (.dwo). libdw opens and
// decompresses any file with such a name. These functions refuse files that are not regular, and
// files that decompress to a disproportionate size.
#pragma once

#include <elfutils/libdwfl.h>
#include <stdbool.h>

// Opens an ELF file. Returns the descriptor, or -1 if the file is missing or refused.
int debug_files_open(const char *path);

// Sets the directories, separated by colons, to search in addition to the system's; NULL removes
// them. Returns 0 or -ENOMEM.
int debug_files_set_folders(const char *folders);

// debug_files_folders contains the directories of debug_files_set_folders as absolute paths.
// debug_files_path contains all directories to search, in the form of a Dwfl's debuginfo_path.
extern const char *debug_files_folders;
extern char *debug_files_path;

// The first file refused in this thread, or "".
extern _Thread_local char debug_files_refused[];

// find_debuginfo callback for a Dwfl whose debuginfo_path is debug_files_path. If a shared file is
// refused, sets the module's user data. The caller must then not read the module any further,
// because libdw would search for the shared file again.
int debug_files_find(Dwfl_Module *module, void **user_data, const char *name, Dwarf_Addr base,
                     const char *file, const char *link, GElf_Word crc, char **found);

// Returns false if libdw could find a refused file by this build ID and suffix.
bool debug_files_id_is_safe(const uint8_t *id, size_t n, const char *ending);

// Returns false if the other half of a split unit is in a refused file.
bool debug_files_unit_is_safe(Dwfl_Module *module, Dwarf_Die *unit);
