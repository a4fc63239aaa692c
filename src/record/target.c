#include "record/target.h"

#include "record/drain_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define DELETED " (deleted)"

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

// Maps a piece of a file. A program that changed its root names it by another path.
static void *map_file(pid_t pid, const char *path, uint64_t offset, size_t bytes)
{
    struct stat st;
    void *p = MAP_FAILED;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT) {
        char *inside = NULL;
        if (asprintf(&inside, "/proc/%ld/root%s", (long)pid, path) >= 0) {
            fd = open(inside, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
            free(inside);
        }
    }
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= (off_t)(offset + bytes))
        p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
    if (fd >= 0)
        close(fd);
    return p == MAP_FAILED ? NULL : p;
}

static struct spool_session *map_session(pid_t pid, const char *spool)
{
    char *path = NULL;
    const char *slash = strrchr(spool, '/');
    if (!slash || asprintf(&path, "%.*s/%s", (int)(slash - spool), spool, SPOOL_SESSION_FILE) < 0)
        return NULL;
    struct spool_session *session = map_file(pid, path, 0, sizeof *session);
    free(path);
    if (session && session->magic != SPOOL_SESSION_MAGIC) {
        munmap(session, sizeof *session);
        session = NULL;
    }
    return session;
}

// The process's own spool? A fork child has its parent's mapped, too, until it makes one itself.
static bool attach_file(struct target *a, pid_t pid, const char *path, uint64_t offset)
{
    struct spool_header *h = map_file(pid, path, offset, SPOOL_HEADER_BYTES);
    if (!h)
        return false;
    if (__atomic_load_n(&h->magic, __ATOMIC_ACQUIRE) == SPOOL_MAGIC && lifetime_is_called(pid, h->pid))
        a->control.session = map_session(pid, path);
    if (a->control.session)
        a->control.header = h;
    else
        munmap(h, SPOOL_HEADER_BYTES);
    return a->control.session;
}

// Is it where one of the session's reserves begins?
static bool is_reserve(uint64_t offset)
{
    return offset >= SPOOL_SESSION_BYTES && (offset - SPOOL_SESSION_BYTES) % SPOOL_RESERVE_BYTES == 0;
}

// The path in a line of /proc/PID/maps that shows the start of a spool, in a file of its own or in the session's; else
// NULL.
static char *spool_path(char *line, uint64_t *offset, bool *ended)
{
    unsigned long long from;
    int at = 0;
    line[strcspn(line, "\n")] = 0;
    if (sscanf(line, "%*x-%*x %*s %llx %*s %*s %n", &from, &at) != 1 || at == 0)
        return NULL;
    *offset = from;
    const char *end = from ? "/" SPOOL_SESSION_FILE : SPOOL_FILE_SUFFIX;
    const char *gone = from ? "/" SPOOL_SESSION_FILE DELETED : SPOOL_FILE_SUFFIX DELETED;
    if (from && !is_reserve(from))
        return NULL;
    *ended |= ends_with(line + at, gone);
    return ends_with(line + at, end) ? line + at : NULL;
}

static int open_error(pid_t pid, struct err *e)
{
    if (errno == ENOENT || errno == ESRCH)
        return err_set(e, -ESRCH, "%ld: no such process", (long)pid);
    return err_set(e, -EACCES, "%ld: not permitted: %s", (long)pid, strerror(errno));
}

int target_open(struct target *a, pid_t pid, struct err *e)
{
    char path[64], *line = NULL;
    size_t room = 0;
    bool ended = false, parents = false;
    *a = (struct target){.control.process = (uint32_t)pid};
    snprintf(path, sizeof path, "/proc/%ld/maps", (long)pid);
    errno = 0;
    FILE *f = fopen(path, "re");
    if (!f)
        return open_error(pid, e);
    while (!a->control.header && getline(&line, &room, f) > 0) {
        uint64_t offset;
        char *spool = spool_path(line, &offset, &ended);
        if (spool)
            parents = !attach_file(a, pid, spool, offset);
    }
    bool refused = ferror(f);
    fclose(f);
    free(line);
    if (a->control.header)
        return 0;
    if (refused)
        return open_error(pid, e);
    if (parents)
        return err_set(e, -ENOENT,
                       "%ld: is not recorded yet (no malloc call since fork), or its spool cannot be opened",
                       (long)pid);
    return err_set(e, -ENOENT, ended ? "%ld: the recording of this process has ended" : "%ld: is not being recorded",
                   (long)pid);
}

void target_close(struct target *a)
{
    munmap(a->control.header, SPOOL_HEADER_BYTES);
    munmap(a->control.session, sizeof *a->control.session);
    *a = (struct target){0};
}
