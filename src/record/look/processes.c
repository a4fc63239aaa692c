// Command lines, language runtimes and descendants of processes.
#include "record/drain/facts.h"
#include "record/look/look_private.h"
#include "record/processes/proc_file.h"

#include <dirent.h>
#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MAX_DESCENDANTS = 1024,
    GO_BYTES = 64 << 10, // first bytes of the data, which contain the mark of the Go linker
    MAX_SEGMENTS = 64,
    MAX_THREADS = 256,
};

void look_command(pid_t pid, char *to, size_t room)
{
    ssize_t n = proc_file_read(pid, "cmdline", to, room);
    while (n > 0 && !to[n - 1])
        n--;
    for (ssize_t i = 0; i < n; i++)
        to[i] = to[i] ? to[i] : ' ';
    if (n > 0)
        return;
    proc_file_read(pid, "comm", to, room);
    to[strcspn(to, "\n")] = 0;
}

uint64_t look_image(pid_t pid)
{
    // The values include random addresses of the program and of its stack.
    uint64_t words[64], hash = 0;
    int fd = proc_file_open(pid, "auxv");
    ssize_t n = fd < 0 ? 0 : read(fd, words, sizeof words);
    proc_file_close(fd);
    for (size_t i = 0; n > 0 && i < (size_t)n / sizeof *words; i++)
        hash = (hash ^ words[i]) * 0x100000001b3;
    return hash;
}

// Returns true if the first bytes of a writable segment contain the mark of the Go linker.
static bool is_go(pid_t pid)
{
    static const char mark[] = "\xff Go buildinf:";
    Elf64_Ehdr h;
    Elf64_Phdr p;
    bool found = false;
    int fd = proc_file_open(pid, "exe");
    char *bytes = malloc(GO_BYTES);
    bool is_elf = fd >= 0 && bytes && pread(fd, &h, sizeof h, 0) == (ssize_t)sizeof h &&
                  memcmp(h.e_ident, ELFMAG, SELFMAG) == 0;
    for (unsigned i = 0; is_elf && !found && i < h.e_phnum && i < MAX_SEGMENTS; i++) {
        if (pread(fd, &p, sizeof p, (off_t)(h.e_phoff + i * sizeof p)) != (ssize_t)sizeof p ||
            p.p_type != PT_LOAD || !(p.p_flags & PF_W))
            continue;
        ssize_t n = pread(fd, bytes, GO_BYTES, (off_t)p.p_offset);
        found = n > 0 && memmem(bytes, (size_t)n, mark, sizeof mark - 1);
    }
    free(bytes);
    proc_file_close(fd);
    return found;
}

const struct software_runtime *look_runtime(pid_t pid, const struct look_maps *m)
{
    char exe[PATH_MAX], path[64];
    snprintf(path, sizeof path, "/proc/%ld/exe", (long)pid);
    ssize_t n = readlink(path, exe, sizeof exe - 1);
    exe[n > 0 ? n : 0] = 0;
    const struct software_runtime *found = software_runtime_of(exe);
    for (unsigned k = 0; !found && k < SOFTWARE_RUNTIMES; k++) {
        for (size_t i = 0; !found && i < m->n_names; i++) {
            if (software_is_library(&software_runtimes[k], m->names[i].name))
                found = &software_runtimes[k];
        }
    }
    return found ? found : is_go(pid) ? software_go() : NULL;
}

// Appends the children of a process. /proc lists children for each thread. Returns the new number
// of entries.
static size_t add_children(pid_t pid, pid_t *all, size_t n)
{
    char path[64];
    long child;
    unsigned threads = 0;
    DIR *tasks = proc_file_folder(pid, "task");
    for (pid_t tid; threads++ < MAX_THREADS && (tid = proc_file_next(tasks));) {
        snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, tid);
        FILE *f = fopen(path, "re");
        while (f && n < MAX_DESCENDANTS && fscanf(f, "%ld", &child) == 1)
            all[n++] = (pid_t)child;
        if (f)
            fclose(f);
    }
    proc_file_close_folder(tasks);
    return n;
}

void look_children_read(struct look *l)
{
    pid_t *all = malloc(MAX_DESCENDANTS * sizeof *all);
    size_t n = all ? add_children(l->pid, all, 0) : 0;
    for (size_t i = 0; i < n; i++) {
        struct trace_sample s = {0};
        n = add_children(all[i], all, n);
        if (!facts_memory(&s, all[i]))
            continue;
        l->children++;
        l->children_bytes += s.rss_bytes;
        if (s.rss_bytes > l->largest_child.rss_bytes)
            l->largest_child = (struct look_process){.pid = all[i], .rss_bytes = s.rss_bytes};
    }
    free(all);
    if (l->largest_child.pid)
        look_command(l->largest_child.pid, l->largest_child.command,
                     sizeof l->largest_child.command);
}
