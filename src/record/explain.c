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

static bool is_dynamic(int fd, const Elf64_Ehdr *h)
{
    for (unsigned i = 0; i < h->e_phnum; i++) {
        Elf64_Phdr p;
        if (pread(fd, &p, sizeof p, (off_t)(h->e_phoff + (uint64_t)i * h->e_phentsize)) != (ssize_t)sizeof p)
            break;
        if (p.p_type == PT_INTERP)
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
    if (!is_dynamic(fd, &h))
        return "is statically linked; its calls cannot be intercepted";
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
