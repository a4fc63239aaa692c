#include "record/code_names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void code_names_release(struct code_names *c)
{
    if (c->fd >= 0)
        close(c->fd);
    buf_release(&c->line);
    names_release(&c->names);
    *c = (struct code_names){.fd = -1};
}

void code_names_restart(struct code_names *c)
{
    names_release(&c->names);
    c->at = c->bytes = c->line.size = 0;
    c->ended = c->too_long = false;
}

// Anybody may put a file into /tmp: it is to be the process's own, and written while it ran.
static bool is_of(int fd, const struct code_names_process *p)
{
    char path[64];
    struct stat file, process;
    snprintf(path, sizeof path, "/proc/%ld", (long)p->visible_pid);
    if (fstat(fd, &file) < 0 || !S_ISREG(file.st_mode))
        return false;
    // Times of files are of whole ticks of the kernel, some ms old.
    uint64_t written_ns = (uint64_t)file.st_mtim.tv_sec * 1000000000u + (uint64_t)file.st_mtim.tv_nsec;
    if (written_ns + 100000000u < p->since_ns)
        return false;
    return file.st_uid == geteuid() || (p->visible_pid && stat(path, &process) == 0 && process.st_uid == file.st_uid);
}

static int open_checked(const char *path, const struct code_names_process *p)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
    if (fd < 0 || is_of(fd, p))
        return fd;
    close(fd);
    return -1;
}

// In the process's own /tmp; where that is not to be seen, in the recorder's.
static int open_map(const struct code_names_process *p)
{
    char path[96];
    int fd = -1;
    if (p->visible_pid) {
        snprintf(path, sizeof path, "/proc/%ld/root/tmp/perf-%u.map", (long)p->visible_pid, p->own_pid);
        fd = open_checked(path, p);
    }
    snprintf(path, sizeof path, "/tmp/perf-%u.map", p->own_pid);
    return fd >= 0 || (p->visible_pid && (uint32_t)p->visible_pid != p->own_pid) ? fd : open_checked(path, p);
}

// A hexadecimal number and the space behind it. False: there is none.
static bool get_number(const char **at, const char *end, uint64_t *v)
{
    unsigned digits = 0;
    *v = 0;
    if (end - *at > 2 && (*at)[0] == '0' && (*at)[1] == 'x')
        *at += 2;
    for (; *at < end && **at != ' '; (*at)++, digits++) {
        char c = **at;
        unsigned digit = c >= '0' && c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 32) - 'a') + 10;
        if (digit > 15 || (digit > 9 && ((c | 32) < 'a' || (c | 32) > 'f')))
            return false;
        *v = *v << 4 | digit;
    }
    if (!digits || digits > 16 || *at == end)
        return false;
    ++*at;
    return true;
}

static int put_line(struct code_names *c, const char *line, size_t n)
{
    const char *at = line, *end = line + n;
    uint64_t start, bytes;
    if (!get_number(&at, end, &start) || !get_number(&at, end, &bytes) || at == end || !*at || !bytes) {
        c->bad_lines++;
        return 0;
    }
    int rc = names_begin(&c->names, 0, start, bytes);
    return rc < 0 ? rc : names_function(&c->names, at, (size_t)(end - at), "", 0, 0);
}

// The whole lines of what is there; what follows them is kept. A line without an end is cut: no name is so long.
static int put_lines(struct code_names *c)
{
    enum { LINE_BYTES = 2 * NAMES_TEXT_BYTES };
    char *at = (char *)c->line.data, *end = at + c->line.size, *newline;
    int rc = 0;
    while (rc == 0 && (newline = memchr(at, '\n', (size_t)(end - at)))) {
        rc = put_line(c, at, (size_t)(newline - at));
        at = newline + 1;
    }
    if (end - at > LINE_BYTES) {
        c->bad_lines++;
        at = end;
    }
    c->line.size = (size_t)(end - at);
    memmove(c->line.data, at, c->line.size);
    return rc;
}

// 1 when there may be more.
static int read_piece(struct code_names *c)
{
    enum { PIECE_BYTES = 1 << 16 };
    if (buf_reserve(&c->line, PIECE_BYTES) < 0)
        return -ENOMEM;
    ssize_t n = pread(c->fd, c->line.data + c->line.size, PIECE_BYTES, (off_t)c->at);
    if (n <= 0)
        return 0;
    c->line.size += (size_t)n;
    c->at += (uint64_t)n;
    c->bytes += (uint64_t)n;
    int rc = put_lines(c);
    return rc < 0 ? rc : 1;
}

void code_names_read(struct code_names *c, const struct code_names_process *p, bool all)
{
    struct stat st;
    int rc = 1;
    if (c->ended)
        return;
    if (c->fd < 0)
        c->fd = open_map(p);
    if (c->fd < 0 || fstat(c->fd, &st) < 0)
        return;
    // It was written anew.
    if ((uint64_t)st.st_size < c->at)
        c->at = c->line.size = 0;
    for (uint64_t first = c->bytes; rc == 1 && (all || c->bytes - first < CODE_NAMES_PASS);) {
        rc = c->bytes < CODE_NAMES_BYTES ? read_piece(c) : 0;
        c->too_long |= c->bytes >= CODE_NAMES_BYTES;
    }
    c->ended = rc < 0 || c->too_long;
}
