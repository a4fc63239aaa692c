// Prints the functions at addresses of a file as `stat --by site` does: name_addresses FILE
// <ADDRESSES. Each input line is a return address in the file in hexadecimal. The output has a line
// for each function, the innermost first, with a tab and FILE:LINE, and an empty line after each
// address.
#include "analysis/symbols/symbols.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Adds the executable segment of the file as if the program were mapped at its link address.
static int add_code(struct workload_sites *sites, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    Elf *elf = elf_version(EV_CURRENT) && fd >= 0 ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
    size_t n = 0;
    char text[4096];
    if (!elf || elf_getphdrnum(elf, &n) < 0)
        return -1;
    int bytes = snprintf(text, sizeof text, " %s", path);
    for (size_t i = 0; i < n; i++) {
        GElf_Phdr p;
        if (!gelf_getphdr(elf, (int)i, &p) || p.p_type != PT_LOAD || !(p.p_flags & PF_X))
            continue;
        uint64_t inside = p.p_vaddr % 4096;
        const struct workload_module m = {p.p_vaddr - inside, p.p_memsz + inside,
                                          p.p_offset - inside, NULL, NULL};
        if (workload_sites_module(sites, &m, text, (size_t)bytes) < 0)
            return -1;
    }
    elf_end(elf);
    return sites->n_modules ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct workload_sites sites = {0};
    char line[64], *path = argc == 2 ? realpath(argv[1], NULL) : NULL;
    if (!path || add_code(&sites, path) < 0)
        return 1;
    struct symbols *symbols = symbols_new(&sites, path);
    while (symbols && fgets(line, sizeof line, stdin)) {
        const struct symbol *found;
        struct workload_frame f = workload_sites_locate(&sites, strtoull(line, NULL, 16));
        size_t n = symbols_of(symbols, &f, &found);
        for (size_t i = 0; i < n; i++)
            printf("%s\t%s:%d\n", found[i].function, *found[i].file ? found[i].file : "?",
                   found[i].line);
        printf("\n");
    }
    symbols_free(symbols);
    workload_sites_release(&sites);
    free(path);
    return 0;
}
