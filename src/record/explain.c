// Why a program records no events, judged by its file.
#include "record/record.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

// The file that execvp(3) would run. False when there is none.
static bool find_program(const char *program, char path[PATH_MAX])
{
    if (strchr(program, '/'))
        return snprintf(path, PATH_MAX, "%s", program) < PATH_MAX && access(path, F_OK) == 0;
    const char *p = getenv("PATH");
    p = p ? p : "/bin:/usr/bin";
    while (*p) {
        size_t n = strcspn(p, ":");
        if (snprintf(path, PATH_MAX, "%.*s/%s", (int)(n ? n : 1), n ? p : ".", program) < PATH_MAX &&
            access(path, X_OK) == 0)
            return true;
        p += n + (p[n] == ':');
    }
    return false;
}

// Replaces the path of a script by that of its interpreter. Scripts without a #! line are run by /bin/sh.
static bool follow_script(char path[PATH_MAX], const char *head, size_t n)
{
    if (n >= 4 && memcmp(head, ELFMAG, SELFMAG) == 0)
        return false;
    if (n < 3 || head[0] != '#' || head[1] != '!') {
        strcpy(path, "/bin/sh");
        return true;
    }
    const char *from = head + 2 + strspn(head + 2, " \t");
    size_t length = strcspn(from, " \t\n");
    if (length == 0 || length >= PATH_MAX)
        return false;
    memcpy(path, from, length);
    path[length] = 0;
    return true;
}

// The first segment of the type that holds the address, or of the type at all (0). False when there is none.
static bool find_segment(int fd, const Elf64_Ehdr *h, uint32_t type, uint64_t address, Elf64_Phdr *p)
{
    for (unsigned i = 0; i < h->e_phnum; i++) {
        if (pread(fd, p, sizeof *p, (off_t)(h->e_phoff + (uint64_t)i * h->e_phentsize)) != (ssize_t)sizeof *p)
            return false;
        if (p->p_type == type && (!address || address - p->p_vaddr < p->p_filesz))
            return true;
    }
    return false;
}

enum { MAX_DYNAMIC = 512, NAME_BYTES = 32 };

// Does the program need a library whose name begins so?
static bool needs(int fd, const Elf64_Ehdr *h, const char *library)
{
    Elf64_Phdr at, strings;
    Elf64_Dyn dynamic[MAX_DYNAMIC];
    uint64_t table = 0;
    if (!find_segment(fd, h, PT_DYNAMIC, 0, &at))
        return false;
    size_t room = at.p_filesz < sizeof dynamic ? at.p_filesz : sizeof dynamic;
    ssize_t got = pread(fd, dynamic, room, (off_t)at.p_offset);
    size_t n = got > 0 ? (size_t)got / sizeof *dynamic : 0;
    for (size_t i = 0; i < n; i++)
        table = dynamic[i].d_tag == DT_STRTAB ? dynamic[i].d_un.d_ptr : table;
    if (!table || !find_segment(fd, h, PT_LOAD, table, &strings))
        return false;
    for (size_t i = 0; i < n; i++) {
        char name[NAME_BYTES] = "";
        uint64_t offset = table - strings.p_vaddr + strings.p_offset + dynamic[i].d_un.d_val;
        if (dynamic[i].d_tag == DT_NEEDED && pread(fd, name, sizeof name, (off_t)offset) > 0 &&
            strncmp(name, library, strlen(library)) == 0)
            return true;
    }
    return false;
}

static const char *explain_privileges(int fd)
{
    struct stat st;
    char capabilities[64];
    if (fstat(fd, &st) < 0)
        return NULL;
    if (((st.st_mode & S_ISUID) && st.st_uid != geteuid()) || ((st.st_mode & S_ISGID) && st.st_gid != getegid()))
        return "is setuid or setgid, which disables LD_PRELOAD";
    if (geteuid() != 0 && fgetxattr(fd, "security.capability", capabilities, sizeof capabilities) > 0)
        return "has file capabilities, which disables LD_PRELOAD";
    return NULL;
}

static const char *explain_file(int fd, const char *head, size_t n)
{
    Elf64_Ehdr h;
    if (n < sizeof h)
        return NULL;
    memcpy(&h, head, sizeof h);
    if (h.e_ident[EI_CLASS] != ELFCLASS64)
        return "is a 32-bit program";
    Elf64_Phdr interpreter;
    if (!find_segment(fd, &h, PT_INTERP, 0, &interpreter))
        return "is statically linked; its calls cannot be intercepted";
    if (needs(fd, &h, "libasan.so") || needs(fd, &h, "libclang_rt.asan"))
        return "uses AddressSanitizer, which ends it when another library is preloaded; "
               "set ASAN_OPTIONS=verify_asan_link_order=0";
    return explain_privileges(fd);
}

const char *record_explain(const char *program)
{
    char path[PATH_MAX], head[PATH_MAX];
    if (!find_program(program, path))
        return NULL;
    // An interpreter may be a script itself; the kernel stops after four.
    for (unsigned depth = 0; depth < 5; depth++) {
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0)
            return NULL;
        ssize_t n = read(fd, head, sizeof head - 1);
        head[n > 0 ? n : 0] = 0;
        bool script = follow_script(path, head, n > 0 ? (size_t)n : 0);
        const char *why = script ? NULL : explain_file(fd, head, (size_t)n);
        close(fd);
        if (!script)
            return why;
    }
    return NULL;
}
