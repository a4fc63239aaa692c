#include "analysis/symbols.h"

#include "base/buf.h"
#include "base/map.h"
#include "base/printable.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libiberty/demangle.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_INLINED = 32 };

// What is known of a module's file.
struct module {
    bool opened;
    Dwfl *dwfl; // NULL: there is no usable file
    Dwfl_Module *file;
};

struct symbols_found {
    size_t first;
    size_t n;
};

struct symbols {
    const struct workload_sites *sites;
    struct module *modules;
    struct map by_address; // address → index in `found` + 1
    struct symbols_found *found;
    size_t n_found, found_capacity;
    struct symbol *list;
    size_t n_list, list_capacity;
    char **texts; // owned
    size_t n_texts, texts_capacity;
    uint64_t missing;
    const char *missing_path;
    struct symbol scratch[MAX_INLINED];
};

struct symbols *symbols_new(const struct workload_sites *sites)
{
    struct symbols *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->sites = sites;
    s->modules = calloc(sites->n_modules + 1, sizeof *s->modules);
    if (s->modules)
        return s;
    free(s);
    return NULL;
}

void symbols_free(struct symbols *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->sites->n_modules; i++) {
        if (s->modules[i].dwfl)
            dwfl_end(s->modules[i].dwfl);
    }
    for (size_t i = 0; i < s->n_texts; i++)
        free(s->texts[i]);
    map_release(&s->by_address);
    free(s->modules);
    free(s->found);
    free(s->list);
    free(s->texts);
    free(s);
}

// Keeps a text that came from malloc, which may be NULL. "" when out of memory.
static const char *keep(struct symbols *s, char *text)
{
    if (!text || HT_GROW(&s->texts, &s->texts_capacity, s->n_texts + 1) < 0) {
        free(text);
        return "";
    }
    return s->texts[s->n_texts++] = text;
}

// Where the file is loaded, less the addresses that it has itself. Where no segment of it can have been mapped so, it is
// another file.
static bool find_bias(const char *path, const struct workload_module *m, uint64_t *bias)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    Elf *elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ_MMAP, NULL);
    size_t n = 0;
    bool found = false;
    if (elf && elf_getphdrnum(elf, &n) < 0)
        n = 0;
    for (size_t i = 0; i < n && !found; i++) {
        GElf_Phdr p;
        if (!gelf_getphdr(elf, (int)i, &p) || p.p_type != PT_LOAD || !(p.p_flags & PF_X))
            continue;
        uint64_t page = p.p_align ? p.p_align : 1, first = p.p_offset / page * page;
        found = m->offset >= first && m->offset < p.p_offset + p.p_memsz;
        *bias = m->start - (p.p_vaddr - p.p_offset + m->offset);
    }
    elf_end(elf);
    if (fd >= 0)
        close(fd);
    return found;
}

static bool has_build_id(Dwfl_Module *file, const char *digits)
{
    const unsigned char *id;
    GElf_Addr at, bias;
    char text[3];
    if (!*digits)
        return true; // nothing is known that could differ
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

// Opens a file as the module's. False: it is not the one that ran, or cannot be read.
static bool open_file(struct module *to, const struct workload_module *m, const char *path)
{
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
                                             .find_debuginfo = dwfl_standard_find_debuginfo};
    uint64_t bias;
    if (!find_bias(path, m, &bias))
        return false;
    Dwfl *dwfl = dwfl_begin(&callbacks);
    if (!dwfl)
        return false;
    dwfl_report_begin(dwfl);
    Dwfl_Module *file = dwfl_report_elf(dwfl, path, path, -1, bias, true);
    dwfl_report_end(dwfl, NULL, NULL);
    if (!file || !has_build_id(file, m->build_id)) {
        dwfl_end(dwfl);
        return false;
    }
    *to = (struct module){true, dwfl, file};
    return true;
}

// The recorded path, or the debug file that its build id names.
static void open_module(struct module *to, const struct workload_module *m)
{
    char path[4096];
    to->opened = true;
    elf_version(EV_CURRENT);
    if (m->path[0] != '/' || open_file(to, m, m->path) || strlen(m->build_id) < 4)
        return;
    snprintf(path, sizeof path, "/usr/lib/debug/.build-id/%.2s/%s.debug", m->build_id, m->build_id + 2);
    open_file(to, m, path);
}

static const char *demangled(struct symbols *s, const char *name)
{
    char *text = cplus_demangle(name, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
    return text ? keep(s, text) : name;
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

// Where the function of an inlined call was called.
static void call_place(Dwarf_Die *die, Dwarf_Files *files, size_t n_files, struct symbol *to)
{
    Dwarf_Attribute attribute;
    Dwarf_Word number;
    to->file = "";
    to->line = 0;
    if (files && dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attribute), &number) == 0 && number < n_files) {
        const char *file = dwarf_filesrc(files, number, NULL, NULL);
        to->file = file ? file : "";
    }
    if (dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attribute), &number) == 0)
        to->line = (int)number;
}

// The functions that an address belongs to, by its debugging information: innermost first, into s->scratch, whose first
// element has file and line already. 0: there is none.
static size_t find_inlined(struct symbols *s, Dwfl_Module *file, uint64_t address)
{
    Dwarf_Addr bias;
    Dwarf_Die *unit = dwfl_module_addrdie(file, address, &bias), *scopes = NULL, *chain = NULL;
    Dwarf_Files *files = NULL;
    size_t n = 0, n_files = 0;
    int n_scopes = unit ? dwarf_getscopes(unit, address - bias, &scopes) : 0;
    // The scopes of the source's text; what is wanted are those of the code.
    int n_chain = n_scopes > 0 ? dwarf_getscopes_die(&scopes[0], &chain) : 0;
    if (unit && dwarf_getsrcfiles(unit, &files, &n_files) != 0)
        files = NULL;
    for (int i = 0; i < n_chain && n < MAX_INLINED; i++) {
        int tag = dwarf_tag(&chain[i]);
        if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine)
            continue;
        const char *name = name_of(s, &chain[i]);
        if (!name)
            break;
        s->scratch[n++].function = name;
        if (tag == DW_TAG_subprogram)
            break;
        if (n < MAX_INLINED)
            call_place(&chain[i], files, n_files, &s->scratch[n]);
    }
    free(scopes);
    free(chain);
    return n;
}

static const char *hexadecimal(struct symbols *s, uint64_t address)
{
    char *text;
    return keep(s, asprintf(&text, "0x%llx", (unsigned long long)address) < 0 ? NULL : text);
}

// What is known of an address in a module that has a file.
static size_t find_in_file(struct symbols *s, Dwfl_Module *file, uint64_t address)
{
    GElf_Sym symbol;
    GElf_Off offset;
    struct symbol *first = &s->scratch[0];
    Dwfl_Line *line = dwfl_module_getsrc(file, address);
    const char *source = line ? dwfl_lineinfo(line, NULL, &first->line, NULL, NULL, NULL) : NULL;
    first->file = source ? source : "";
    size_t n = find_inlined(s, file, address);
    if (n)
        return n;
    const char *name = dwfl_module_addrinfo(file, address, &offset, &symbol, NULL, NULL, NULL);
    if (!name)
        return 0;
    first->function = demangled(s, name);
    return 1;
}

// A text of the file that nothing in it can harm.
static const char *printable(struct symbols *s, const char *text)
{
    size_t n = strlen(text), i = 0, length;
    while (i < n && (length = printable_length(text + i, n - i)))
        i += length;
    return i == n ? text : keep(s, printable_new(text));
}

static int add_found(struct symbols *s, uint64_t key, size_t n, const char *module)
{
    if (HT_GROW(&s->list, &s->list_capacity, s->n_list + n) < 0 ||
        HT_GROW(&s->found, &s->found_capacity, s->n_found + 1) < 0 || map_put(&s->by_address, key, s->n_found + 1) < 0)
        return -ENOMEM;
    s->found[s->n_found++] = (struct symbols_found){s->n_list, n};
    for (size_t i = 0; i < n; i++) {
        s->scratch[i].function = printable(s, s->scratch[i].function);
        s->scratch[i].file = printable(s, s->scratch[i].file ? s->scratch[i].file : "");
        s->scratch[i].module = printable(s, module);
        s->list[s->n_list++] = s->scratch[i];
    }
    return 0;
}

static int find(struct symbols *s, const struct workload_frame *f)
{
    const struct workload_module *m = f->module ? &s->sites->modules[f->module - 1] : NULL;
    struct module *file = f->module ? &s->modules[f->module - 1] : NULL;
    size_t n = 0;
    if (file && !file->opened)
        open_module(file, m);
    memset(s->scratch, 0, sizeof s->scratch);
    // The call stands before the address that it returns to.
    if (file && file->dwfl)
        n = find_in_file(s, file->file, f->address - 1);
    else {
        s->missing++;
        s->missing_path = m && m->path[0] == '/' && !s->missing_path ? m->path : s->missing_path;
    }
    if (n == 0) {
        s->scratch[0] = (struct symbol){.function = hexadecimal(s, f->address), .file = ""};
        n = 1;
    }
    return add_found(s, f->address, n, m ? m->path : "");
}

size_t symbols_of(struct symbols *s, const struct workload_frame *f, const struct symbol **found)
{
    uint64_t i = map_get(&s->by_address, f->address);
    if (!i && find(s, f) < 0)
        return 0;
    i = i ? i : s->n_found;
    *found = s->list + s->found[i - 1].first;
    return s->found[i - 1].n;
}

uint64_t symbols_missing(const struct symbols *s, const char **path)
{
    *path = s->missing_path;
    return s->missing;
}
