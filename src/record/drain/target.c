#include "record/drain/target.h"

#include "base/bytes.h"
#include "base/frame.h"
#include "record/drain/drain_private.h"

#include <dirent.h>
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

// Opens `path`. If that fails, opens the same path in the process's root directory.
static int open_file(pid_t pid, const char *path, int flags)
{
    flags |= O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int fd = open(path, flags);
    char *inside = NULL;
    if (fd < 0 && errno == ENOENT && asprintf(&inside, "/proc/%ld/root%s", (long)pid, path) >= 0) {
        fd = open(inside, flags);
        free(inside);
    }
    return fd;
}

static void *map_file(int fd, uint64_t offset, size_t bytes, int protection)
{
    struct stat st;
    void *p = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        st.st_size >= (off_t)(offset + bytes))
        p = mmap(NULL, bytes, protection, MAP_SHARED, fd, (off_t)offset);
    return p == MAP_FAILED ? NULL : p;
}

static bool open_session(struct target *a, pid_t pid, const char *spool)
{
    char *path = NULL;
    const char *slash = strrchr(spool, '/');
    struct spool_session *s = &a->session;
    if (!slash || asprintf(&path, "%.*s/%s", (int)(slash - spool), spool, SPOOL_SESSION_FILE) < 0)
        return false;
    int fd = open_file(pid, path, O_RDONLY);
    free(path);
    if (fd >= 0 && pread(fd, s, sizeof *s, 0) == (ssize_t)sizeof *s &&
        s->magic == SPOOL_SESSION_MAGIC)
        a->control.futexes = map_file(fd, 0, sizeof *s, PROT_READ);
    a->control.session = s;
    proc_file_close(fd);
    return a->control.futexes;
}

// Opens and maps the spool. Returns false if the spool is the parent's: a forked child has it
// mapped until it creates its own.
static bool attach_file(struct target *a, pid_t pid, const char *path, uint64_t offset)
{
    int fd = open_file(pid, path, O_RDWR);
    struct spool_header *h = map_file(fd, offset, SPOOL_HEADER_BYTES, PROT_READ | PROT_WRITE);
    proc_file_close(fd);
    if (!h)
        return false;
    if (__atomic_load_n(&h->magic, __ATOMIC_ACQUIRE) == SPOOL_MAGIC &&
        lifetime_has_pid(pid, h->pid) && open_session(a, pid, path))
        a->control.header = h;
    else
        munmap(h, SPOOL_HEADER_BYTES);
    return a->control.header;
}

static bool is_reserve(uint64_t offset)
{
    return offset >= SPOOL_RESERVES_BYTES &&
           (offset - SPOOL_RESERVES_BYTES) % SPOOL_RESERVE_BYTES == 0;
}

static bool is_reserves_file(const char *path, bool *gone)
{
    const char *name = basename(path);
    if (strncmp(name, SPOOL_RESERVES_FILE, strlen(SPOOL_RESERVES_FILE)) != 0)
        return false;
    *gone |= ends_with(name, DELETED);
    return !ends_with(name, DELETED);
}

// If a line of /proc/PID/maps shows the start of the spool, returns the path of the spool, else
// NULL. Sets *ended if the file was deleted.
static char *spool_path(char *line, uint64_t *offset, bool *ended)
{
    unsigned long long from;
    int at = 0;
    if (sscanf(line, "%*x-%*x %*s %llx %*s %*s %n", &from, &at) != 1 || at == 0)
        return NULL;
    *offset = from;
    if (from)
        return is_reserve(from) && is_reserves_file(line + at, ended) ? line + at : NULL;
    *ended |= ends_with(line + at, SPOOL_FILE_SUFFIX DELETED);
    return ends_with(line + at, SPOOL_FILE_SUFFIX) ? line + at : NULL;
}

static int open_error(pid_t pid, struct err *e)
{
    if (errno == ENOENT || errno == ESRCH)
        return err_set(e, -ESRCH, "%ld: no such process", (long)pid);
    return err_set(e, -EACCES, "%ld: not permitted: %s", (long)pid, strerror(errno));
}

int target_open(struct target *a, pid_t pid, struct err *e)
{
    struct proc_file_lines maps;
    char *line;
    bool ended = false, parents = false;
    *a = (struct target){.control.process = (uint32_t)pid};
    if (!proc_file_lines_open(&maps, "/proc/%d/maps", pid))
        return open_error(pid, e);
    while (!a->control.header && (line = proc_file_lines_next(&maps))) {
        uint64_t offset;
        char *spool = spool_path(line, &offset, &ended);
        if (spool)
            parents = !attach_file(a, pid, spool, offset);
    }
    bool refused = ferror(maps.file);
    proc_file_lines_close(&maps);
    if (a->control.header)
        return 0;
    if (refused)
        return open_error(pid, e);
    if (parents)
        return err_set(
            e, -ENOENT,
            "%ld: is not recorded yet (no malloc call since fork), or its spool cannot be opened",
            (long)pid);
    return err_set(e, -ENOENT,
                   ended ? "%ld: the recording of this process has ended"
                         : "%ld: is not being recorded",
                   (long)pid);
}

void target_close(struct target *a)
{
    munmap(a->control.header, SPOOL_HEADER_BYTES);
    munmap((void *)a->control.futexes, sizeof *a->control.futexes);
    *a = (struct target){0};
}

static bool is_output(uint32_t recorder, const char *number, const char *path)
{
    char info[64];
    uint8_t magic[4];
    unsigned flags = 0;
    struct stat st;
    snprintf(info, sizeof info, "/proc/%u/fdinfo/%.20s", recorder, number);
    FILE *f = fopen(info, "re");
    bool known = f && fscanf(f, "pos: %*u flags: %o", &flags) == 1;
    if (f)
        fclose(f);
    // Open only regular files, because opening a special file can have side effects.
    if (!known || (flags & O_ACCMODE) == O_RDONLY || stat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool is = fd >= 0 && pread(fd, magic, sizeof magic, 0) == (ssize_t)sizeof magic &&
              get_u32(magic) == FRAME_MAGIC_TRACE;
    proc_file_close(fd);
    return is;
}

int target_output(const struct target *a, char path[TARGET_PATH_BYTES], struct err *e)
{
    uint32_t pid = a->control.process, recorder = a->session.recorder_pid;
    char folder[32];
    const struct dirent *entry;
    bool found = false;
    if (a->session.flags & SPOOL_NO_RECORDER)
        return err_set(
            e, -ENOENT,
            "%u: has no recorder: its trace is written later, by 'heaptape record --collect'", pid);
    snprintf(folder, sizeof folder, "/proc/%u/fd", recorder);
    DIR *d = opendir(folder);
    if (!d)
        return err_set(e, errno == EACCES ? -EACCES : -ENOENT,
                       "%u: cannot read the open files of its recorder, process %u: %s", pid,
                       recorder, strerror(errno));
    while (!found && (entry = readdir(d))) {
        snprintf(path, TARGET_PATH_BYTES, "%s/%.20s", folder, entry->d_name);
        found = entry->d_name[0] != '.' && is_output(recorder, entry->d_name, path);
    }
    closedir(d);
    return found ? 0
                 : err_set(e, -ENOENT, "%u: its recorder, process %u, writes no trace to a file",
                           pid, recorder);
}
