#include "attach/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Copies the text of the field: "" where there is none.
static void read_field(pid_t pid, pid_t tid, const char *field, char *to, size_t room)
{
    char path[64], *line = NULL;
    size_t capacity = 0, n = strlen(field);
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/status", (long)pid, (long)tid);
    FILE *f = fopen(path, "re");
    to[0] = 0;
    while (f && !to[0] && getline(&line, &capacity, f) > 0) {
        if (strncmp(line, field, n) == 0 && line[n] == ':')
            snprintf(to, room, "%s", line + n + 1 + strspn(line + n + 1, "\t "));
    }
    free(line);
    if (f)
        fclose(f);
}

uint64_t status_number(pid_t pid, pid_t tid, const char *field, int base)
{
    char text[32];
    read_field(pid, tid, field, text, sizeof text);
    return strtoull(text, NULL, base);
}

char status_letter(pid_t pid, pid_t tid, const char *field)
{
    char text[2];
    read_field(pid, tid, field, text, sizeof text);
    return text[0];
}

enum { CAP_DAC_OVERRIDE_BIT = 1, CAP_SYS_PTRACE_BIT = 19 };

// Of the Yama security module; 0: anything goes that the user's rights allow.
static int ptrace_scope(void)
{
    char digit = '0';
    FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    if (f && fread(&digit, 1, 1, f) != 1)
        digit = '0';
    if (f)
        fclose(f);
    return digit - '0';
}

int status_denied(pid_t pid, struct err *e)
{
    int scope = ptrace_scope();
    uint64_t user = status_number(pid, pid, "Uid", 10), rights = status_number(getpid(), getpid(), "CapEff", 16);
    if (scope >= 3)
        return err_set(e, -EACCES,
                       "%ld: not permitted: kernel.yama.ptrace_scope is 3, which forbids it until the next boot",
                       (long)pid);
    // /proc/PID/mem is a file of the process's user.
    if (rights >> CAP_SYS_PTRACE_BIT & ~rights >> CAP_DAC_OVERRIDE_BIT & 1 && user != geteuid())
        return err_set(e, -EACCES,
                       "%ld: not permitted: it belongs to user %llu; run heaptape as that user, or with "
                       "CAP_DAC_OVERRIDE beside CAP_SYS_PTRACE",
                       (long)pid, (unsigned long long)user);
    if (rights >> CAP_SYS_PTRACE_BIT & 1)
        return err_set(e, -EACCES,
                       "%ld: not permitted, although heaptape has CAP_SYS_PTRACE: by a security module, or "
                       "from inside a user namespace",
                       (long)pid);
    if (user != getuid())
        return err_set(e, -EACCES, "%ld: not permitted: it belongs to user %llu; run heaptape as that user or as root",
                       (long)pid, (unsigned long long)user);
    if (scope > 0)
        return err_set(e, -EACCES, "%ld: not permitted: kernel.yama.ptrace_scope is %d; run heaptape as root%s",
                       (long)pid, scope, scope == 1 ? ", or set it to 0 (sysctl kernel.yama.ptrace_scope=0)" : "");
    return err_set(e, -EACCES, "%ld: not permitted: it has rights that heaptape lacks; run heaptape as root",
                   (long)pid);
}
