#include "analysis/symbols/debug_files.h"

#include "base/bytes.h"
#include "base/fio.h"
#include "base/printable.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYSTEM_PATH ":.debug:/usr/lib/debug"

enum {
    // Limit on the decompressed size of a file's sections: FIRST_BYTES, plus this many bytes for
    // each byte of the file. Compilers need at most 10 bytes per byte.
    FIRST_BYTES = 16 << 20,
    BYTES_FOR_EACH = 32,
    // The decompressed size of an LZMA section is not known in advance, so the compressed size is
    // limited. Such a section holds function names and makes up about 1/30 of a file.
    FIRST_LZMA_BYTES = 64 << 10,
    LZMA_PART = 16,
};

static char system_path[] = SYSTEM_PATH;
char *debug_files_path = system_path;
const char *debug_files_folders;
_Thread_local char debug_files_refused[PATH_MAX];

int debug_files_set_folders(const char *folders)
{
    char *list = NULL, *longer, *name, *at = folders ? strdup(folders) : NULL, *copy = at;
    int rc = !folders || copy ? 0 : -ENOMEM;
    while (rc == 0 && (name = strsep(&at, ":"))) {
        // libdw would resolve a relative directory against the directory of each file.
        char *absolute = *name ? realpath(name, NULL) : NULL;
        if (absolute && asprintf(&longer, "%s:%s", list ? list : SYSTEM_PATH, absolute) < 0)
            rc = -ENOMEM;
        if (absolute && rc == 0) {
            free(list);
            list = longer;
        }
        free(absolute);
    }
    free(copy);
    if (debug_files_path != system_path)
        free(debug_files_path);
    debug_files_path = list ? list : system_path;
    debug_files_folders = list ? list + sizeof SYSTEM_PATH : NULL;
    return rc;
}

// Returns the decompressed size of a section in .zdebug format, or 0. This format predates the
// compression flag of ELF.
static uint64_t zdebug_bytes(Elf *elf, Elf_Scn *section, size_t names, const GElf_Shdr *header)
{
    const char *name = elf_strptr(elf, names, header->sh_name);
    Elf_Data *data = name && strncmp(name, ".zdebug", 7) == 0 ? elf_rawdata(section, NULL) : NULL;
    if (!data || data->d_size < 12 || memcmp(data->d_buf, "ZLIB", 4) != 0)
        return 0;
    return __builtin_bswap64(get_u64((const uint8_t *)data->d_buf + 4));
}

static bool is_lzma(Elf *elf, size_t names, const GElf_Shdr *header)
{
    const char *name = elf_strptr(elf, names, header->sh_name);
    return name && strcmp(name, ".gnu_debugdata") == 0;
}

static bool subtract_bytes(uint64_t *left, uint64_t bytes)
{
    bool fits = bytes <= *left;
    *left -= fits ? bytes : 0;
    return fits;
}

// Returns true if the size of the decompressed sections is in proportion to the size of the file.
static bool has_bounded_sections(Elf *elf, uint64_t bytes)
{
    uint64_t left = FIRST_BYTES + BYTES_FOR_EACH * bytes;
    uint64_t lzma = bytes / LZMA_PART > FIRST_LZMA_BYTES ? bytes / LZMA_PART : FIRST_LZMA_BYTES;
    size_t names = 0;
    GElf_Shdr header;
    GElf_Chdr compressed;
    bool fits = true;
    for (Elf_Scn *at = NULL; fits && (at = elf_nextscn(elf, at));) {
        if (gelf_getshdr(at, &header) && header.sh_flags & SHF_COMPRESSED)
            fits = gelf_getchdr(at, &compressed) && subtract_bytes(&left, compressed.ch_size);
    }
    // Section names may themselves be compressed, so check the flags before reading names.
    if (!fits || elf_getshdrstrndx(elf, &names) < 0)
        return fits;
    for (Elf_Scn *at = NULL; fits && (at = elf_nextscn(elf, at));) {
        if (!gelf_getshdr(at, &header))
            continue;
        fits = subtract_bytes(&left, zdebug_bytes(elf, at, names, &header));
        if (is_lzma(elf, names, &header))
            fits &= header.sh_size <= lzma;
    }
    return fits;
}

static int refuse_file(const char *name)
{
    if (!debug_files_refused[0])
        printable_copy(debug_files_refused, sizeof debug_files_refused, name, strlen(name));
    return -1;
}

int debug_files_open(const char *name)
{
    struct stat st;
    int fd = input_regular_fd(name, &st);
    if (fd < 0)
        return fd == -EINVAL && !S_ISDIR(st.st_mode) ? refuse_file(name) : -1;
    elf_version(EV_CURRENT);
    // libdw would also decompress files that are not ELF files.
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    bool good =
        elf && elf_kind(elf) == ELF_K_ELF && has_bounded_sections(elf, (uint64_t)st.st_size);
    elf_end(elf);
    if (good)
        return fd;
    close(fd);
    return refuse_file(name);
}

// Returns true if a file with this name exists and libdw must not read it. A missing file is
// harmless.
static bool is_refused(const char *name)
{
    struct stat st;
    if (stat(name, &st) < 0 || S_ISDIR(st.st_mode))
        return false;
    int fd = debug_files_open(name);
    if (fd >= 0)
        close(fd);
    return fd < 0;
}

static bool is_refused_in(const char *folder, size_t folder_bytes, const char *below,
                          const char *name)
{
    char text[PATH_MAX];
    int n = snprintf(text, sizeof text, "%.*s/%s/%s", (int)folder_bytes, folder, below, name);
    return n < 0 || (size_t)n >= sizeof text || is_refused(text);
}

// Returns the next element of libdw's path, or NULL at the end. An element is "" (the directory of
// the file), a path relative to that directory, or an absolute path.
static const char *next_element(const char **at, size_t *n)
{
    const char *element = *at;
    if (!element)
        return NULL;
    *n = strcspn(element, ":");
    *at = element[*n] ? element + *n + 1 : NULL;
    return element;
}

bool debug_files_id_is_safe(const uint8_t *id, size_t n, const char *ending)
{
    char name[2 * 64 + sizeof "/.debug"];
    const char *element, *at = debug_files_path;
    size_t bytes, used = 0;
    if (n < 3 || n > 64)
        return true; // libdw ignores such IDs
    for (size_t i = 0; i < n; i++)
        used += (size_t)sprintf(name + used, i == 1 ? "/%02x" : "%02x", id[i]);
    strcpy(name + used, ending);
    while ((element = next_element(&at, &bytes))) {
        if (*element == '/' && is_refused_in(element, bytes, ".build-id", name))
            return false;
    }
    return true;
}

// Returns true if a file that libdw may open for the name is refused. libdw searches next to
// `file`, and below each search directory for every trailing part of the path of `file`.
static bool is_name_refused(const char *file, const char *name)
{
    const char *slash = strrchr(file, '/'), *element, *at = debug_files_path;
    size_t bytes;
    if (!slash)
        return true;
    char *folder = strndup(file, (size_t)(slash - file));
    bool refused = !folder;
    while (!refused && (element = next_element(&at, &bytes))) {
        char below[PATH_MAX];
        if (*element != '/') {
            snprintf(below, sizeof below, "%.*s", (int)bytes, element);
            refused = is_refused_in(folder, strlen(folder), below, name);
            continue;
        }
        for (const char *part = folder; !refused && part; part = strchr(part + 1, '/'))
            refused = is_refused_in(element, bytes, part, name);
        refused |= is_refused_in(element, bytes, "", name);
    }
    free(folder);
    return refused;
}

static bool is_link_refused(const char *file, const char *link)
{
    char other[NAME_MAX + 16];
    const char *base = basename(file);
    const char *link_base = link ? basename(link) : NULL;
    if (!link) {
        snprintf(other, sizeof other, "%s.debug", base);
        return is_name_refused(file, other) || is_name_refused(file, base);
    }
    // A file that dwz created and that several files share.
    snprintf(other, sizeof other, ".dwz/%s", link_base);
    return (*link == '/' && is_refused(link)) || is_name_refused(file, link) ||
           is_name_refused(file, link_base) || is_name_refused(file, other);
}

static bool is_any_refused(Dwfl_Module *module, const char *file, const char *link, bool is_shared)
{
    const unsigned char *id = NULL;
    const char *name;
    Dwarf_Addr at;
    ssize_t n = 0;
    if (is_shared)
        n = dwelf_dwarf_gnu_debugaltlink(dwfl_module_getdwarf(module, &at), &name,
                                         (const void **)&id);
    else
        n = dwfl_module_build_id(module, &id, &at);
    if (n > 0 && !debug_files_id_is_safe(id, (size_t)n, ".debug"))
        return true;
    char *real = realpath(file, NULL);
    bool refused = is_link_refused(file, link) || (real && is_link_refused(real, link));
    free(real);
    return refused;
}

int debug_files_find(Dwfl_Module *module, void **user_data, const char *name, Dwarf_Addr base,
                     const char *file, const char *link, GElf_Word crc, char **found)
{
    // Links to shared files have no checksum.
    bool is_shared = link && !crc;
    if (!file || is_any_refused(module, file, link, is_shared)) {
        // Mark the module, because libdw would open the shared file later.
        if (is_shared)
            *user_data = module;
        errno = 0;
        return -1;
    }
    return dwfl_standard_find_debuginfo(module, user_data, name, base, file, link, crc, found);
}

static const char *unit_text(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute a;
    return dwarf_attr(die, name, &a) ? dwarf_formstring(&a) : NULL;
}

bool debug_files_unit_is_safe(Dwfl_Module *module, Dwarf_Die *unit)
{
    const char *main = NULL, *debug = NULL, *name = unit_text(unit, DW_AT_dwo_name);
    char in[PATH_MAX] = "";
    if (!name)
        name = unit_text(unit, DW_AT_GNU_dwo_name);
    if (!name)
        return true;
    dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, &main, &debug);
    if (*name == '/')
        return !is_refused(name);
    if (!realpath(debug ? debug : main ? main : "", in))
        return false;
    *strrchr(in, '/') = 0;
    const char *folder = unit_text(unit, DW_AT_comp_dir);
    if (is_refused_in(in, strlen(in), "", name))
        return false;
    if (!folder)
        return true;
    return *folder == '/' ? !is_refused_in(folder, strlen(folder), "", name)
                          : !is_refused_in(in, strlen(in), folder, name);
}
