#include "analysis/symbols/symbols.h"

#include "analysis/symbols/debug_files.h"
#include "analysis/symbols/debug_info.h"
#include "analysis/symbols/demangle.h"
#include "analysis/symbols/wrappers.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/printable.h"
#include "trace/codec.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_INLINED = 64, MAX_PEELED = 16 };

// The file of a module.
struct module {
    bool opened;
    bool own;   // the module belongs to the program
    Dwfl *dwfl; // NULL if there is no usable file
    Dwfl_Module *file;
    struct debug_info *debug; // NULL when out of memory
};

struct symbols_found {
    size_t first;
    size_t n;
};

struct symbols {
    const struct workload_sites *sites;
    struct names_index names; // names that the trace or workload contains
    struct module *modules;
    // Number of modules when symbols_new was called; `sites` may have more modules later.
    size_t n_modules;
    struct map by_address; // maps a module and an address to the index in `found` plus 1
    struct symbols_found *found;
    size_t n_found, found_capacity;
    struct symbol *list;
    size_t n_list, list_capacity;
    char **texts; // owned
    size_t n_texts, texts_capacity;
    uint64_t missing;
    const char *missing_path;
    struct wrappers wrappers;
    size_t wrapped_sites; // number of sites when the wrappers were found
    struct symbol scratch[MAX_INLINED];
};

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static bool begins_with_any(const char *text, const char *const starts[], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (begins_with(text, starts[i]))
            return true;
    }
    return false;
}

#define BEGINS_WITH_ANY(text, starts) begins_with_any(text, starts, sizeof starts / sizeof *starts)

// Returns true if the path is in a library directory of the Filesystem Hierarchy Standard 3.0 (3.9,
// 4.6), or in the store of Nix or Guix.
static bool is_in_system(const char *path)
{
    static const char *const folders[] = {
        "/lib/",       "/lib32/",     "/lib64/",      "/libx32/",    "/usr/lib/",
        "/usr/lib32/", "/usr/lib64/", "/usr/libx32/", "/nix/store/", "/gnu/store/"};
    return BEGINS_WITH_ANY(path, folders);
}

bool symbols_is_own(const struct workload_module *m, const char *exe)
{
    const char *path = m->path, *name = strrchr(path, '/');
    if (path[0] == '/' && exe && strcmp(path, exe) == 0 && begins_with(path, "/memfd:"))
        return true;
    if (path[0] != '/' || begins_with(path, "/memfd:") || begins_with(path, "/dev/") ||
        begins_with(name, "/libheaptape"))
        return false;
    // If the program was started through the dynamic loader, `exe` is the loader, which is in a
    // library directory.
    const char *slash = exe ? strrchr(exe, '/') : NULL;
    size_t folder = slash && !begins_with(slash, "/ld-") ? (size_t)(slash - exe) + 1 : 0;
    if (folder && (size_t)(name - path) + 1 == folder && memcmp(path, exe, folder) == 0)
        return true;
    return !is_in_system(path);
}

void symbols_debug_dirs(const char *dirs)
{
    debug_files_set_folders(dirs);
}

// Sets limits, in seconds, on how long an unresponsive server can delay the program: one for the
// first 100 KiB, and one for the entire file. The user's settings take precedence.
static void bound_downloads(void)
{
    if (getenv("DEBUGINFOD_URLS") && *getenv("DEBUGINFOD_URLS")) {
        setenv("DEBUGINFOD_TIMEOUT", "10", 0);
        setenv("DEBUGINFOD_MAXTIME", "300", 0);
    }
}

struct symbols *symbols_new(const struct workload_sites *sites, const char *exe)
{
    struct symbols *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    bound_downloads();
    s->sites = sites;
    s->n_modules = sites->n_modules;
    s->modules = calloc(s->n_modules + 1, sizeof *s->modules);
    if (s->modules && names_index_init(&s->names, &sites->names) == 0) {
        for (size_t i = 0; i < s->n_modules; i++)
            s->modules[i].own = symbols_is_own(&sites->modules[i], exe);
        return s;
    }
    free(s->modules);
    free(s);
    return NULL;
}

void symbols_free(struct symbols *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_modules; i++) {
        debug_info_free(s->modules[i].debug);
        if (s->modules[i].dwfl)
            dwfl_end(s->modules[i].dwfl);
    }
    for (size_t i = 0; i < s->n_texts; i++)
        free(s->texts[i]);
    map_release(&s->by_address);
    wrappers_release(&s->wrappers);
    names_index_release(&s->names);
    free(s->modules);
    free(s->found);
    free(s->list);
    free(s->texts);
    free(s);
}

// Takes ownership of the allocated string `text` and returns it. Returns "" if `text` is NULL, or
// when out of memory.
static const char *keep_text(struct symbols *s, char *text)
{
    if (!text || HT_GROW(&s->texts, &s->texts_capacity, s->n_texts + 1) < 0) {
        free(text);
        return "";
    }
    return s->texts[s->n_texts++] = text;
}

// Computes the difference between load addresses and addresses in the file. If no executable
// segment can have been mapped as recorded, this is a different file, so returns false. In debug
// files, the segments are empty and objcopy has changed their offsets, so the offsets are derived
// from the addresses.
static bool find_bias(Elf *elf, const struct workload_module *m, uint64_t *bias)
{
    size_t n = 0;
    bool found = false, first = true;
    uint64_t lowest = 0;
    if (elf_getphdrnum(elf, &n) < 0)
        n = 0;
    for (size_t i = 0; i < n && !found; i++) {
        GElf_Phdr p;
        if (!gelf_getphdr(elf, (int)i, &p) || p.p_type != PT_LOAD)
            continue;
        lowest = first ? p.p_vaddr - p.p_vaddr % (p.p_align ? p.p_align : 1) : lowest;
        first = false;
        if (!(p.p_flags & PF_X))
            continue;
        uint64_t offset = p.p_filesz ? p.p_offset : p.p_vaddr - lowest;
        uint64_t page = p.p_align ? p.p_align : 1, begin = offset / page * page;
        found = m->offset >= begin && m->offset < offset + p.p_memsz;
        *bias = m->start - (p.p_vaddr - offset + m->offset);
    }
    return found;
}

static bool has_build_id(Dwfl_Module *file, const char *digits)
{
    const unsigned char *id;
    GElf_Addr at, bias;
    char text[3];
    if (!*digits)
        return true; // nothing to compare
    dwfl_module_getelf(file, &bias);
    int n = dwfl_module_build_id(file, &id, &at);
    if (n <= 0 || (size_t)n * 2 != strlen(digits))
        return false;
    for (int i = 0; i < n; i++) {
        snprintf(text, sizeof text, "%02x", id[i]);
        if (memcmp(text, digits + 2 * (size_t)i, 2) != 0)
            return false;
    }
    return true;
}

// Reads the debugging information that the file has or refers to. Returns false if the file refers
// to a debug file that debug_files_find has refused.
static bool is_whole(Dwfl_Module *file)
{
    void **refused = NULL;
    Dwarf_Addr bias;
    dwfl_module_getdwarf(file, &bias);
    dwfl_module_info(file, &refused, NULL, NULL, NULL, NULL, NULL, NULL);
    return !*refused;
}

static Dwfl *new_dwfl(void)
{
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
                                             .find_debuginfo = debug_files_find,
                                             .debuginfo_path = &debug_files_path};
    return dwfl_begin(&callbacks);
}

// Opens a file for the module and takes ownership of the descriptor. Returns false if the file
// cannot be read or is not the recorded file.
static bool open_fd(struct module *to, const struct workload_module *m, const char *path, int fd)
{
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    uint64_t bias;
    bool found = elf && elf_kind(elf) == ELF_K_ELF && find_bias(elf, m, &bias);
    elf_end(elf);
    Dwfl *dwfl = found ? new_dwfl() : NULL;
    if (!dwfl) {
        close(fd);
        return false;
    }
    dwfl_report_begin(dwfl);
    Dwfl_Module *file = dwfl_report_elf(dwfl, path, path, fd, bias, true);
    if (!file)
        close(fd);
    dwfl_report_end(dwfl, NULL, NULL);
    if (!file || !has_build_id(file, m->build_id) || !is_whole(file)) {
        dwfl_end(dwfl);
        return false;
    }
    to->dwfl = dwfl;
    to->file = file;
    to->debug = debug_info_new(file);
    return true;
}

static bool open_file(struct module *to, const struct workload_module *m, const char *path)
{
    int fd = debug_files_open(path);
    return fd >= 0 && open_fd(to, m, path, fd);
}

// Searches a directory for the file or its debugging information by build ID.
static bool open_by_id(struct module *to, const struct workload_module *m, const char *dir,
                       int dir_bytes)
{
    char path[4096];
    if (strlen(m->build_id) < 4)
        return false;
    for (unsigned debug = 0; debug < 2; debug++) {
        snprintf(path, sizeof path, "%.*s/.build-id/%.2s/%s%s", dir_bytes, dir, m->build_id,
                 m->build_id + 2, debug ? ".debug" : "");
        if (open_file(to, m, path))
            return true;
    }
    return false;
}

// Searches one of the user's directories, which may be a copy of the recorded machine's
// directories. A name without a build ID does not identify a file.
static bool open_in_dir(struct module *to, const struct workload_module *m, const char *dir,
                        int dir_bytes)
{
    char path[4096];
    if (open_by_id(to, m, dir, dir_bytes))
        return true;
    snprintf(path, sizeof path, "%.*s%s", dir_bytes, dir, m->path);
    if (open_file(to, m, path))
        return true;
    snprintf(path, sizeof path, "%.*s%s", dir_bytes, dir, strrchr(m->path, '/'));
    return m->build_id[0] && open_file(to, m, path);
}

static bool open_from_server(struct module *to, const struct workload_module *m)
{
    uint8_t id[64];
    size_t n = strlen(m->build_id) / 2;
    if (n < 2 || n > sizeof id || !getenv("DEBUGINFOD_URLS"))
        return false;
    for (size_t i = 0; i < n; i++) {
        unsigned byte = 0;
        if (sscanf(m->build_id + 2 * i, "%2x", &byte) != 1)
            return false;
        id[i] = (uint8_t)byte;
    }
    Dwfl *dwfl = debug_files_id_is_safe(id, n, "") ? new_dwfl() : NULL;
    if (!dwfl)
        return false;
    dwfl_report_begin(dwfl);
    Dwfl_Module *module = dwfl_report_module(dwfl, m->path, m->start, m->start + m->bytes);
    char *path = NULL;
    Elf *elf = NULL;
    int fd = -1;
    if (module && dwfl_module_report_build_id(module, id, n, m->start) == 0)
        fd = dwfl_build_id_find_elf(module, NULL, m->path, m->start, &path, &elf);
    elf_end(elf);
    dwfl_report_end(dwfl, NULL, NULL);
    dwfl_end(dwfl);
    bool opened = fd >= 0 && open_fd(to, m, path ? path : m->path, fd);
    free(path);
    return opened;
}

static void open_module(struct module *to, const struct workload_module *m)
{
    static const char system_dir[] = "/usr/lib/debug";
    to->opened = true;
    elf_version(EV_CURRENT);
    if (m->path[0] != '/')
        return;
    for (const char *dir = debug_files_folders; dir && *dir;) {
        int n = (int)strcspn(dir, ":");
        if (open_in_dir(to, m, dir, n))
            return;
        dir += n + (dir[n] == ':');
    }
    if (!open_file(to, m, m->path) && !open_by_id(to, m, system_dir, (int)strlen(system_dir)))
        open_from_server(to, m);
}

// Abbreviates std::string. The demangler abbreviates only strings of the old ABI.
static void shorten_strings(char *name)
{
    static const char whole[] =
        "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
    static const char shorter[] = "std::string";
    for (char *at = name; (at = strstr(at, whole)); at += sizeof shorter - 1) {
        memcpy(at, shorter, sizeof shorter - 1);
        memmove(at + sizeof shorter - 1, at + sizeof whole - 1, strlen(at + sizeof whole - 1) + 1);
    }
}

static const char *demangled(struct symbols *s, const char *name)
{
    char *text = demangle_new(name);
    if (text)
        shorten_strings(text);
    return text ? keep_text(s, text) : name;
}

static const char *name_of(struct symbols *s, Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    const char *name = NULL;
    if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute))
        name = dwarf_formstring(&attribute);
    if (!name)
        name = dwarf_diename(die);
    return name ? demangled(s, name) : NULL;
}

static void call_place(Dwarf_Die *die, Dwarf_Files *files, size_t n_files, struct symbol *to)
{
    Dwarf_Attribute attribute;
    Dwarf_Word number;
    to->file = "";
    to->line = 0;
    if (files && dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attribute), &number) == 0 &&
        number < n_files) {
        const char *file = dwarf_filesrc(files, number, NULL, NULL);
        to->file = file ? file : "";
    }
    if (dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attribute), &number) == 0)
        to->line = (int)number;
}

// Returns true if the source file belongs to a system package, Rust's libraries, a downloaded
// crate, or Python's libraries. Templates and inline functions of a library are compiled into the
// program's own objects.
static bool is_system_source(const char *file)
{
    static const char *const folders[] = {"/usr/include/", "/usr/lib/", "/rustc/", "<frozen "};
    return BEGINS_WITH_ANY(file, folders) || strstr(file, "/.cargo/registry/") ||
           strstr(file, "/lib/python3");
}

static uint32_t code_bytes(Dwarf_Die *die)
{
    Dwarf_Addr base, low, high;
    uint64_t bytes = 0;
    for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &low, &high)) > 0;)
        bytes += high - low;
    return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

// Sets *type to the type that the DIE's attribute DW_AT_type refers to. Returns false for void.
static bool type_of(Dwarf_Die *die, Dwarf_Die *type)
{
    Dwarf_Attribute attribute;
    return dwarf_attr_integrate(die, DW_AT_type, &attribute) && dwarf_formref_die(&attribute, type);
}

// Follows type definitions, and also qualifiers if `qualified` is set. Returns the tag of the type.
// Returns DW_TAG_invalid for void and for an endless chain, which occurs only in a corrupt file.
static int peel_type(Dwarf_Die *type, bool qualified)
{
    for (unsigned n = 0; n < MAX_PEELED; n++) {
        int tag = dwarf_tag(type);
        bool peeled = tag == DW_TAG_typedef ||
                      (qualified && (tag == DW_TAG_const_type || tag == DW_TAG_volatile_type));
        if (!peeled)
            return tag;
        if (!type_of(type, type))
            break;
    }
    return DW_TAG_invalid;
}

static enum symbols_result result_of(Dwarf_Die *die)
{
    Dwarf_Die type, to;
    if (!type_of(die, &type))
        return SYMBOLS_RESULT_OTHER;
    int tag = peel_type(&type, true);
    if (tag == DW_TAG_invalid)
        return SYMBOLS_RESULT_UNKNOWN;
    if (tag == DW_TAG_base_type || tag == DW_TAG_enumeration_type)
        return SYMBOLS_RESULT_OTHER;
    if (tag != DW_TAG_pointer_type)
        return SYMBOLS_RESULT_OBJECT;
    if (!type_of(&type, &to))
        return SYMBOLS_RESULT_VOID;
    tag = peel_type(&to, false);
    Dwarf_Attribute size;
    Dwarf_Word bytes = 0;
    if (tag == DW_TAG_const_type)
        return SYMBOLS_RESULT_OTHER;
    if (tag == DW_TAG_base_type)
        dwarf_formudata(dwarf_attr(&to, DW_AT_byte_size, &size), &bytes);
    return bytes == 1 ? SYMBOLS_RESULT_BYTES : SYMBOLS_RESULT_OBJECT;
}

// Collects the functions at an address into s->scratch, innermost first. On entry, scratch[0] has a
// file and a line. Returns 0 if a name is unknown.
static size_t find_inlined(struct symbols *s, struct debug_info_place *place)
{
    Dwarf_Files *files = NULL;
    size_t n = 0, n_files = 0;
    if (place->n && dwarf_getsrcfiles(place->unit, &files, &n_files) != 0)
        files = NULL;
    while (n < place->n) {
        const char *name = name_of(s, &place->functions[n]);
        if (!name)
            return 0;
        s->scratch[n].function = name;
        s->scratch[n].result = result_of(&place->functions[n]);
        s->scratch[n].library = is_system_source(s->scratch[n].file);
        if (++n < place->n)
            call_place(&place->functions[n - 1], files, n_files, &s->scratch[n]);
    }
    if (n)
        s->scratch[n - 1].code_bytes = code_bytes(&place->functions[n - 1]);
    return n;
}

// Formats an address without a name as its object and its offset in the object's file, which are
// the same in every run. If there is no file, uses the offset in the mapping.
static const char *object_offset(struct symbols *s, const struct workload_frame *f)
{
    static const struct workload_module none = {.path = ""};
    const struct workload_module *m = f->module ? &s->sites->modules[f->module - 1] : &none;
    const char *object = m->path[0] ? basename(m->path) : f->module ? SYMBOLS_NO_FILE : "";
    char *text;
    int n = asprintf(&text, "%s%s0x%llx", object, object[0] ? "+" : "",
                     (unsigned long long)(f->address - m->start + m->offset));
    return keep_text(s, n < 0 ? NULL : text);
}

static const char *place_in_source(Dwfl_Module *file, const struct debug_info_place *place,
                                   uint64_t address, int *number)
{
    if (!place->unit) {
        Dwfl_Line *line = dwfl_module_getsrc(file, address);
        return line ? dwfl_lineinfo(line, NULL, number, NULL, NULL, NULL) : NULL;
    }
    Dwarf_Line *line = dwarf_getsrc_die(place->unit, place->address);
    if (!line || dwarf_lineno(line, number) != 0)
        return NULL;
    return dwarf_linesrc(line, NULL, NULL);
}

static size_t find_in_file(struct symbols *s, const struct module *m, uint64_t address)
{
    struct debug_info_place place = {0};
    struct symbol *first = &s->scratch[0];
    if (m->debug)
        debug_info_find(m->debug, address, &place);
    const char *source = place_in_source(m->file, &place, address, &first->line);
    first->file = source ? source : "";
    size_t n = find_inlined(s, &place);
    if (n)
        return n;
    uint64_t bytes = 0;
    const char *name = m->debug ? debug_info_symbol(m->debug, address, &bytes) : NULL;
    if (!name)
        return 0;
    *first = (struct symbol){.file = first->file, .line = first->line};
    first->function = demangled(s, name);
    first->code_bytes = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
    return 1;
}

// Returns the string, or an escaped copy if it is not printable.
static const char *printable(struct symbols *s, const char *text)
{
    size_t n = strlen(text), i = 0, length;
    while (i < n && (length = printable_length(text + i, n - i)))
        i += length;
    return i == n ? text : keep_text(s, printable_new(text));
}

static bool is_wrapper(const struct symbols *s, const struct symbol *f)
{
    return !f->library && map_get(&s->wrappers.keys, wrappers_key(f));
}

static int add_found(struct symbols *s, uint64_t key, size_t n, const char *module, bool own)
{
    if (HT_GROW(&s->list, &s->list_capacity, s->n_list + n) < 0 ||
        HT_GROW(&s->found, &s->found_capacity, s->n_found + 1) < 0 ||
        map_put(&s->by_address, key, s->n_found + 1) < 0)
        return -ENOMEM;
    s->found[s->n_found++] = (struct symbols_found){s->n_list, n};
    for (size_t i = 0; i < n; i++) {
        s->scratch[i].function = printable(s, s->scratch[i].function);
        s->scratch[i].file = printable(s, s->scratch[i].file ? s->scratch[i].file : "");
        s->scratch[i].module = printable(s, module);
        s->scratch[i].library |= !own || symbols_is_library(s->scratch[i].function);
        s->scratch[i].wrapper = is_wrapper(s, &s->scratch[i]);
        s->list[s->n_list++] = s->scratch[i];
    }
    return 0;
}

static size_t find_named(struct symbols *s, const struct names_entry *e)
{
    const struct names *names = &s->sites->names;
    size_t n = 0;
    for (; e && n < e->n && n < MAX_INLINED; n++) {
        const struct names_function *f = &names->functions[e->first + n];
        s->scratch[n] = (struct symbol){.function = names_text(names, f->function),
                                        .file = names_text(names, f->file),
                                        .line = (int)f->line};
        s->scratch[n].library = is_system_source(s->scratch[n].file);
    }
    return n;
}

static size_t find_in_module(struct symbols *s, const struct workload_frame *f)
{
    const struct workload_module *m = f->module ? &s->sites->modules[f->module - 1] : NULL;
    struct module *file = f->module ? &s->modules[f->module - 1] : NULL;
    if (file && !file->opened)
        open_module(file, m);
    // f->address is the return address, which follows the call instruction.
    if (file && file->dwfl)
        return find_in_file(s, file, f->address - 1);
    s->missing++;
    s->missing_path = m && m->path[0] == '/' && !s->missing_path ? m->path : s->missing_path;
    return 0;
}

// Sets the extent of a function without a name. The unwind tables contain this extent even if the
// file is stripped.
static void find_extent(struct symbols *s, const struct workload_frame *f, struct symbol *to)
{
    const struct module *file = f->module ? &s->modules[f->module - 1] : NULL;
    Dwarf_Addr bias = 0, start = 0, end = 0;
    Dwarf_CFI *cfi = file && file->dwfl ? dwfl_module_eh_cfi(file->file, &bias) : NULL;
    Dwarf_Frame *frame = NULL;
    if (!cfi || dwarf_cfi_addrframe(cfi, f->address - 1 - bias, &frame) != 0)
        return;
    const struct workload_module *m = &s->sites->modules[f->module - 1];
    if (dwarf_frame_info(frame, &start, &end, NULL) >= 0 && start < end) {
        to->code_bytes = end - start < UINT32_MAX ? (uint32_t)(end - start) : UINT32_MAX;
        to->code_offset = start + bias - m->start + m->offset;
    }
    free(frame);
}

static int find_symbols(struct symbols *s, const struct workload_frame *f)
{
    bool made = workload_sites_is_made(s->sites, f);
    memset(s->scratch, 0, sizeof s->scratch);
    size_t n = find_named(s, workload_sites_name(&s->names, f));
    if (n == 0 && made)
        n = find_named(s, workload_sites_made_name(&s->names, f));
    if (n == 0)
        n = find_in_module(s, f);
    for (size_t i = 0; i < n; i++) {
        s->scratch[i].known = true;
        s->scratch[i].script = codec_is_script(f->address);
    }
    if (n == 0) {
        s->scratch[0] = (struct symbol){.function = object_offset(s, f), .file = ""};
        find_extent(s, f, &s->scratch[0]);
        n = 1;
    }
    // Code that was generated at run time belongs to the program.
    bool own = made ? s->scratch[0].known : s->modules[f->module - 1].own;
    return add_found(s, workload_sites_key(f), n,
                     f->module ? s->sites->modules[f->module - 1].path : "", own);
}

void symbols_complete(struct symbols *s, const struct workload_frame *f, size_t index,
                      struct symbol *to)
{
    struct module *m = f->module ? &s->modules[f->module - 1] : NULL;
    if (!m)
        return;
    if (!m->opened)
        open_module(m, &s->sites->modules[f->module - 1]);
    memset(s->scratch, 0, sizeof s->scratch);
    size_t n = m->dwfl ? find_in_file(s, m, f->address - 1) : 0;
    if (index >= n || strcmp(s->scratch[index].function, to->function) != 0)
        return;
    to->code_bytes = s->scratch[index].code_bytes;
    to->result = s->scratch[index].result;
}

size_t symbols_of(struct symbols *s, const struct workload_frame *f, const struct symbol **found)
{
    uint64_t i = map_get(&s->by_address, workload_sites_key(f));
    if (!i && find_symbols(s, f) < 0)
        return 0;
    i = i ? i : s->n_found;
    *found = s->list + s->found[i - 1].first;
    return s->found[i - 1].n;
}

const char *symbols_bare_name(const char *function, size_t *n)
{
    const char *start = function, *at = function;
    unsigned depth = 0;
    // Stop at an operator such as "operator new" or "operator<<". Its symbol belongs to the name.
    for (; *at && !(depth == 0 && *at == '(' && at > start); at++) {
        if (strncmp(at, "operator", 8) == 0 && depth == 0)
            break;
        depth += *at == '<' || *at == '{' || *at == '(' || *at == '[';
        depth -= depth && (*at == '>' || *at == '}' || *at == ')' || *at == ']') && at[-1] != '-';
        if (*at == ' ' && depth == 0)
            start = at + 1;
    }
    *n = *at == '(' ? (size_t)(at - start) : strlen(start);
    return start;
}

// Returns true if the name belongs to the standard libraries of C++ or Rust.
static bool begins_in_library(const char *name)
{
    static const char *const names[] = {
        "std::",
        "__gnu_cxx::",
        "__cxxabiv1::",
        "operator new",
        "operator delete",
        "alloc::",
        "core::",
        "hashbrown::",
        // Allocator functions of Rust. Their mangled names contain no path.
        "__rust_",
        "__rustc",
        "__rdl_",
        "__rg_",
    };
    return BEGINS_WITH_ANY(name, names);
}

static const char *skip_words(const char *at)
{
    static const char *const words[] = {"&", "*const ", "*mut ", "mut ", "dyn ", "[", "("};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strncmp(at, words[i], strlen(words[i])) == 0)
            return skip_words(at + strlen(words[i]));
    }
    return at;
}

// Returns true for a type that no crate of a program defines: a type parameter, such as T, or a
// primitive type.
static bool is_common_type(const char *type, size_t n)
{
    static const char *const types[] = {"u8",  "u16",  "u32", "u64",  "u128",  "usize", "i8",
                                        "i16", "i32",  "i64", "i128", "isize", "bool",  "f32",
                                        "f64", "char", "str", "_",    "!"};
    if (n <= 2 && *type >= 'A' && *type <= 'Z' && (n == 1 || (type[1] >= '0' && type[1] <= '9')))
        return true;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (n == strlen(types[i]) && memcmp(type, types[i], n) == 0)
            return true;
    }
    return false;
}

// Returns true for a method of Rust's libraries, "<TYPE>::f" or "<TYPE as TRAIT>::f". Either the
// type belongs to the libraries, or the type is common and the trait belongs to the libraries.
static bool is_library_method(const char *name)
{
    const char *type = skip_words(name + 1);
    size_t n = strcspn(type, " ,;<>[]()");
    if (begins_in_library(type))
        return true;
    if (!is_common_type(type, n))
        return false;
    const char *trait = strstr(type + n, " as ");
    return !trait || begins_in_library(trait + 4);
}

bool symbols_is_library(const char *function)
{
    size_t n;
    const char *name = symbols_bare_name(function, &n);
    return *name == '<' ? is_library_method(name) : begins_in_library(name);
}

static void mark_wrappers(struct symbols *s)
{
    for (size_t i = 0; i < s->n_list; i++)
        s->list[i].wrapper = is_wrapper(s, &s->list[i]);
}

const struct workload_sites *symbols_sites(const struct symbols *s)
{
    return s->sites;
}

const struct workload_site *symbols_site(const struct symbols *s, uint64_t number)
{
    static const struct workload_site none;
    return s && number && number <= s->sites->n_sites ? &s->sites->sites[number - 1] : &none;
}

const struct workload_frame *symbols_frame(const struct symbols *s,
                                           const struct workload_site *site, uint32_t i)
{
    return &s->sites->frames[site->first + i];
}

int symbols_find_wrappers(struct symbols *s)
{
    const struct workload_sites *sites = s->sites;
    if (s->wrapped_sites && sites->n_sites < 2 * s->wrapped_sites)
        return 0;
    struct wrappers found = {0};
    int rc = wrappers_find(&found, s);
    if (rc < 0) {
        wrappers_release(&found);
        return rc;
    }
    wrappers_release(&s->wrappers);
    s->wrappers = found;
    s->wrapped_sites = sites->n_sites;
    mark_wrappers(s);
    return 0;
}

int symbols_add_wrappers(struct symbols *s, const struct symbols *from)
{
    const struct map *keys = &from->wrappers.keys;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < keys->capacity; i++)
        rc = keys->cells[i].value ? map_put(&s->wrappers.keys, keys->cells[i].key, 1) : 0;
    mark_wrappers(s);
    return rc;
}

const struct wrappers *symbols_wrappers(const struct symbols *s)
{
    return &s->wrappers;
}

uint64_t symbols_missing(const struct symbols *s, const char **path)
{
    *path = s->missing_path;
    return s->missing;
}

void symbols_note_refused(void (*note)(const char *text))
{
    char text[PATH_MAX + 200];
    if (!debug_files_refused[0])
        return;
    snprintf(text, sizeof text,
             "ignored %s: not a regular ELF file, or its compressed sections are too large",
             debug_files_refused);
    note(text);
}

const char *symbols_file(const struct symbol *s)
{
    return s->file[0] ? s->file : s->known ? s->module : "";
}
