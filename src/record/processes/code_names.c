#include "record/processes/code_names.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "record/processes/proc_file.h"
#include "trace/codec.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EVERY_NS 500000000u // between reads while the process is running

void code_names_init(struct code_names *c)
{
    *c = (struct code_names){.map.fd = -1, .dump.fd = -1};
}

static void release_file(struct code_names_file *f)
{
    proc_file_close(f->fd);
    buf_release(&f->in);
}

void code_names_release(struct code_names *c)
{
    release_file(&c->map);
    release_file(&c->dump);
    free(c->dump_path);
    buf_release(&c->lines);
    names_release(&c->names);
    code_names_init(c);
}

void code_names_restart(struct code_names *c)
{
    names_release(&c->names);
    c->map.at = c->map.in.size = c->dump.at = c->lines.size = c->bytes = 0;
    c->map.ended = c->dump.ended = c->too_long = false;
}

// Returns true for absolute paths that end with "/jit-", digits and ".dump".
static bool is_dump(const char *path)
{
    const char *name = strrchr(path, '/');
    if (*path != '/' || strncmp(name, "/jit-", 5) != 0)
        return false;
    size_t digits = strspn(name + 5, "0123456789");
    return digits && strcmp(name + 5 + digits, ".dump") == 0;
}

// Adds the name of a script function. Ignores an invalid record.
static void put_script(struct code_names *c, const struct event *ev)
{
    const size_t start = sizeof CODEC_SCRIPT_TEXT - 1;
    const char *name = ev->text + start,
               *nul = ev->text_bytes > start ? memchr(name, 0, ev->text_bytes - start) : NULL;
    if (nul && names_begin(&c->names, 0, ev->ptr, ev->size) == 0)
        names_function(&c->names, name, (size_t)(nul - name), nul + 1,
                       (size_t)(ev->text + ev->text_bytes - nul - 1),
                       ev->value <= INT32_MAX ? (uint32_t)ev->value : 0);
}

static void find_dump(struct code_names *c, const struct event *ev)
{
    const char *space = ev->text_bytes ? memchr(ev->text, ' ', ev->text_bytes) : NULL;
    char *path = space ? strndup(space + 1, ev->text_bytes - (size_t)(space + 1 - ev->text)) : NULL;
    c->makes_code |= path && *path != '/' && *path != '[';
    if (path && !c->dump_path && is_dump(path))
        c->dump_path = path;
    else
        free(path);
}

void code_names_find(struct code_names *c, const uint64_t *words, uint32_t n)
{
    struct codec_state state = {0};
    struct event ev;
    unsigned used;
    for (uint32_t at = 0; at < n && (used = codec_get(&state, words + at, n - at, &ev));
         at += used) {
        if (ev.kind == HT_MODULE && codec_is_script(ev.ptr))
            put_script(c, &ev);
        else if (ev.kind == HT_MODULE)
            find_dump(c, &ev);
    }
}

// Finds a dump that was mapped after the process had recorded its mappings.
static void find_mapped_dump(struct code_names *c, pid_t pid)
{
    struct proc_file_lines maps;
    proc_file_lines_open(&maps, "/proc/%d/maps", pid);
    for (const char *line; !c->dump_path && (line = proc_file_lines_next(&maps));) {
        const char *name = strchr(line, '/');
        if (name && is_dump(name))
            c->dump_path = strdup(name);
    }
    proc_file_lines_close(&maps);
}

// Returns the real time at which the process started, or UINT64_MAX if unknown.
static uint64_t find_start_ns(pid_t pid)
{
    char stat[1024];
    uint64_t ticks = pid && proc_file_read(pid, "stat", stat, sizeof stat) > 0
                         ? proc_file_stat(stat, PROC_FILE_START_TICKS)
                         : 0;
    uint64_t since_boot_ns = ticks * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
    return ticks ? clock_ns(CLOCK_REALTIME) - (clock_ns(CLOCK_BOOTTIME) - since_boot_ns)
                 : UINT64_MAX;
}

// Returns true if the file belongs to the process's user and is not older than the process. The
// check is needed because any user can create files in /tmp.
static bool belongs_to_process(int fd, const struct code_names_process *p)
{
    char path[64];
    struct stat file, process;
    snprintf(path, sizeof path, "/proc/%ld", (long)p->visible_pid);
    if (fstat(fd, &file) < 0 || !S_ISREG(file.st_mode))
        return false;
    // Allow for 0.1 s, because file times have the resolution of the kernel's tick.
    uint64_t written_ns =
        (uint64_t)file.st_mtim.tv_sec * 1000000000u + (uint64_t)file.st_mtim.tv_nsec;
    // If the recorder attached to the process, the files may be older than since_ns.
    uint64_t start_ns = find_start_ns(p->visible_pid);
    if (written_ns + 100000000u < (start_ns < p->since_ns ? start_ns : p->since_ns))
        return false;
    return file.st_uid == geteuid() ||
           (p->visible_pid && stat(path, &process) == 0 && process.st_uid == file.st_uid);
}

static int open_checked(const char *path, const struct code_names_process *p)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
    if (fd < 0 || belongs_to_process(fd, p))
        return fd;
    close(fd);
    return -1;
}

// Opens a file in the process's root directory. If that fails, opens it in the recorder's root
// directory, provided that the process is unknown or in the recorder's pid namespace.
static int open_in_process(const struct code_names_process *p, const char *path)
{
    char there[4096];
    int fd = -1, n = p->visible_pid ? snprintf(there, sizeof there, "/proc/%ld/root%s",
                                               (long)p->visible_pid, path)
                                    : 0;
    if (n > 0 && (size_t)n < sizeof there)
        fd = open_checked(there, p);
    return fd >= 0 || (p->visible_pid && (uint32_t)p->visible_pid != p->own_pid)
               ? fd
               : open_checked(path, p);
}

static void open_files(struct code_names *c, const struct code_names_process *p)
{
    char path[32];
    if (c->makes_code && !c->dump_path && p->visible_pid)
        find_mapped_dump(c, p->visible_pid);
    snprintf(path, sizeof path, "/tmp/perf-%u.map", p->own_pid);
    if (c->map.fd < 0)
        c->map.fd = open_in_process(p, path);
    if (c->dump.fd < 0 && c->dump_path)
        c->dump.fd = open_in_process(p, c->dump_path);
}

static bool get_number(char **at, uint64_t *v)
{
    bool has_digits = isxdigit((unsigned char)**at); // strtoull also accepts spaces and a sign
    errno = 0;
    *v = strtoull(*at, at, 16);
    return has_digits && errno == 0 && *(*at)++ == ' ';
}

// Adds the function in a line of the map file. The line ends with a 0 byte.
static int put_line(struct code_names *c, char *line)
{
    uint64_t start, bytes;
    if (!get_number(&line, &start) || !get_number(&line, &bytes) || !*line || !bytes) {
        c->bad_lines++;
        return 0;
    }
    return names_begin(&c->names, 0, start, bytes)
               ?: names_function(&c->names, line, strlen(line), "", 0, 0);
}

// Parses the complete lines in the buffer. Keeps the incomplete line at the end, unless it is too
// long for a name.
static int put_lines(struct code_names *c)
{
    enum { LINE_BYTES = 2 * NAMES_TEXT_BYTES };
    struct buf *in = &c->map.in;
    char *at = (char *)in->data, *end = at + in->size, *newline;
    int rc = 0;
    while (rc == 0 && (newline = memchr(at, '\n', (size_t)(end - at)))) {
        *newline = 0;
        rc = put_line(c, at);
        at = newline + 1;
    }
    if (end - at > LINE_BYTES) {
        c->bad_lines++;
        at = end;
    }
    in->size = (size_t)(end - at);
    memmove(in->data, at, in->size);
    return rc;
}

enum { PIECE_BYTES = 1 << 16 };

// Reads the next part of a file. Returns the number of bytes read, 0 at the end, or -ENOMEM.
static ssize_t read_next(struct code_names *c, struct code_names_file *f)
{
    if (buf_reserve(&f->in, PIECE_BYTES) < 0)
        return -ENOMEM;
    ssize_t n = pread(f->fd, f->in.data + f->in.size, PIECE_BYTES, (off_t)f->at);
    f->in.size += n > 0 ? (size_t)n : 0;
    c->bytes += n > 0 ? (uint64_t)n : 0;
    return n < 0 ? 0 : n;
}

// Reads part of the file. Returns 1 if there may be more data, 0 at the end, or -ENOMEM.
static int read_map(struct code_names *c)
{
    ssize_t n = read_next(c, &c->map);
    c->map.at += n > 0 ? (uint64_t)n : 0;
    int rc = n > 0 ? put_lines(c) : (int)n;
    return rc < 0 ? rc : n > 0;
}

// jitdump, in the machine's byte order. Each record starts with kind, size and timestamp.
enum {
    DUMP_MAGIC = 0x4a695444,
    DUMP_HEADER_BYTES = 40,
    DUMP_V8 = 0xdeadbeef, // V8 writes this into an unused field of the header
    DUMP_V8_SHIFT = 0x40, // V8 adds this to addresses in line tables, like perf inject
    DUMP_LOAD = 0,
    DUMP_MOVE = 1,
    DUMP_LINES = 2,
    DUMP_RECORD_BYTES = 16,
    DUMP_LOAD_BYTES = 56, // the name and the code follow
    DUMP_LINES_BYTES = 32,
    DUMP_LINE_BYTES = 16, // size of a line entry; the path follows
};

// If the previous record is the line table of this function, adds the table. An entry applies up to
// the end of the function, except where a later entry overrides it.
static int put_source(struct code_names *c, uint64_t start, uint64_t bytes, const char *name,
                      size_t name_bytes)
{
    const uint8_t *at = c->lines.data + DUMP_LINES_BYTES, *end = c->lines.data + c->lines.size;
    const char *path = "";
    int rc = 0;
    // V8 lists the lines of inlined functions with the path of the outer function, so ignore them.
    if (c->dump_shift && name_bytes > 4 && memcmp(name, "JS:*", 4) == 0)
        return 0;
    if (c->lines.size < DUMP_LINES_BYTES || get_u64(c->lines.data + DUMP_RECORD_BYTES) != start)
        return 0;
    for (uint64_t left = get_u64(c->lines.data + 24); rc == 0 && left && end - at > DUMP_LINE_BYTES;
         left--) {
        const char *text = (const char *)at + DUMP_LINE_BYTES,
                   *nul = memchr(text, 0, (size_t)((const char *)end - text));
        if (!nul)
            break;
        uint64_t from = get_u64(at) - c->dump_shift - start;
        // "\xff" repeats the previous path.
        path = strcmp(text, "\xff") == 0 ? path : text;
        uint32_t line = get_u32(at + 8);
        if (from < bytes && (rc = names_begin(&c->names, 0, start + from, bytes - from)) == 0)
            rc = names_function(&c->names, name, name_bytes, path, NAMES_TEXT_BYTES,
                                line <= INT32_MAX ? line : 0);
        at = (const uint8_t *)nul + 1;
    }
    return rc;
}

static int put_load(struct code_names *c, const uint8_t *at, size_t n)
{
    const char *name = (const char *)at + DUMP_LOAD_BYTES;
    size_t name_bytes = n > DUMP_LOAD_BYTES ? strnlen(name, n - DUMP_LOAD_BYTES) : 0;
    uint64_t start = n > DUMP_LOAD_BYTES ? get_u64(at + 32) : 0,
             bytes = n > DUMP_LOAD_BYTES ? get_u64(at + 40) : 0;
    if (!name_bytes || !bytes) {
        c->bad_lines++;
        return 0;
    }
    int rc = names_begin(&c->names, 0, start, bytes);
    rc = rc ?: names_function(&c->names, name, name_bytes, "", 0, 0);
    return rc < 0 ? rc : put_source(c, start, bytes, name, name_bytes);
}

static size_t needed_bytes(uint32_t kind, uint32_t size)
{
    size_t most = kind == DUMP_LOAD    ? DUMP_LOAD_BYTES + NAMES_TEXT_BYTES
                  : kind == DUMP_LINES ? PIECE_BYTES
                                       : DUMP_RECORD_BYTES;
    return size < most ? size : most;
}

static int put_record(struct code_names *c, uint32_t kind, const uint8_t *at, size_t n)
{
    int rc = kind == DUMP_LOAD ? put_load(c, at, n) : 0;
    // Moved code is not supported. Neither V8 nor the JVM moves code.
    c->bad_lines += kind == DUMP_MOVE;
    if (kind == DUMP_LOAD || kind == DUMP_LINES)
        c->lines.size = 0;
    if (rc == 0 && kind == DUMP_LINES)
        rc = buf_put(&c->lines, at, n);
    return rc;
}

// Returns the offset of the first record, or 0 if the header is incomplete or invalid.
static uint64_t read_header(struct code_names *c, const uint8_t *at, size_t n)
{
    if (n < DUMP_HEADER_BYTES)
        return 0;
    c->dump_shift = get_u32(at + 16) == DUMP_V8 ? DUMP_V8_SHIFT : 0;
    uint32_t bytes = get_u32(at + 8);
    c->dump.ended = get_u32(at) != DUMP_MAGIC || get_u32(at + 4) != 1 || bytes < DUMP_HEADER_BYTES;
    c->bad_lines += c->dump.ended;
    return c->dump.ended ? 0 : bytes;
}

// Reads part of the file. Returns 1 if there may be more data, 0 at the end, or -ENOMEM.
static int read_dump(struct code_names *c)
{
    c->dump.in.size = 0;
    ssize_t got = read_next(c, &c->dump);
    const uint8_t *from = c->dump.in.data;
    uint64_t done = 0, n = got > 0 ? (uint64_t)got : 0;
    int rc = got < 0 ? -ENOMEM : 0;
    if (c->dump.at == 0)
        done = read_header(c, from, n);
    while (rc == 0 && (c->dump.at || done) && done < n && n - done >= DUMP_RECORD_BYTES) {
        uint32_t kind = get_u32(from + done), size = get_u32(from + done + 4);
        size_t wanted = needed_bytes(kind, size);
        if (size < DUMP_RECORD_BYTES) {
            c->bad_lines++;
            c->dump.ended = true;
            break;
        }
        if (wanted > n - done)
            break;
        rc = put_record(c, kind, from + done, wanted);
        done += size;
    }
    c->dump.at += done;
    return rc < 0 ? rc : done > 0 && !c->dump.ended;
}

static void read_file(struct code_names *c, struct code_names_file *f,
                      int (*read_piece)(struct code_names *), bool all)
{
    struct stat st;
    int rc = 1;
    if (f->ended || f->fd < 0 || fstat(f->fd, &st) < 0)
        return;
    // If the file has become shorter, it was rewritten.
    if ((uint64_t)st.st_size < f->at)
        f->at = f->in.size = 0;
    for (uint64_t first = c->bytes; rc == 1 && (all || c->bytes - first < CODE_NAMES_PASS);) {
        rc = c->bytes < CODE_NAMES_BYTES ? read_piece(c) : 0;
        c->too_long |= c->bytes >= CODE_NAMES_BYTES;
    }
    f->ended |= rc < 0 || c->too_long;
}

bool code_names_is_due(struct code_names *c, uint64_t now_ns)
{
    if (c->checked_ns && now_ns - c->checked_ns < EVERY_NS)
        return false;
    c->checked_ns = now_ns;
    return true;
}

void code_names_read(struct code_names *c, const struct code_names_process *p, bool all)
{
    open_files(c, p);
    read_file(c, &c->map, read_map, all);
    read_file(c, &c->dump, read_dump, all);
}
