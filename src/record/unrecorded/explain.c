// Explains why a program records no events, by inspecting its file or a process that runs it.
#include "record/drain/drain_private.h"
#include "record/processes/proc_file.h"
#include "record/record.h"
#include "record/unrecorded/unrecorded.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

bool record_find_program(const char *program, int mode, char path[PATH_MAX])
{
    if (strchr(program, '/'))
        return snprintf(path, PATH_MAX, "%s", program) < PATH_MAX && access(path, F_OK) == 0;
    const char *p = getenv("PATH");
    p = p ? p : "/bin:/usr/bin";
    while (*p) {
        size_t n = strcspn(p, ":");
        if (snprintf(path, PATH_MAX, "%.*s/%s", (int)(n ? n : 1), n ? p : ".", program) <
                PATH_MAX &&
            access(path, mode) == 0)
            return true;
        p += n + (p[n] == ':');
    }
    return false;
}

// Replaces the path of a script with the path of its interpreter, or /bin/sh if there is no #!
// line. Returns false for ELF files.
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

// Finds the first segment of a type that contains `address`, or any such segment if `address` is 0.
static bool find_segment(int fd, const Elf64_Ehdr *h, uint32_t type, uint64_t address,
                         Elf64_Phdr *p)
{
    for (unsigned i = 0; i < h->e_phnum; i++) {
        if (pread(fd, p, sizeof *p, (off_t)(h->e_phoff + (uint64_t)i * h->e_phentsize)) !=
            (ssize_t)sizeof *p)
            return false;
        if (p->p_type == type && (!address || address - p->p_vaddr < p->p_filesz))
            return true;
    }
    return false;
}

enum { MAX_DYNAMIC = 512, NAME_BYTES = 32 };

static bool needs_library(int fd, const Elf64_Ehdr *h, const char *library)
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

static const char setuid_text[] = "is setuid or setgid, which disables LD_PRELOAD";
static const char capabilities_text[] = "has file capabilities, which disables LD_PRELOAD";

static const char *explain_privileges(int fd)
{
    struct stat st;
    char capabilities[64];
    if (fstat(fd, &st) < 0)
        return NULL;
    if (((st.st_mode & S_ISUID) && st.st_uid != geteuid()) ||
        ((st.st_mode & S_ISGID) && st.st_gid != getegid()))
        return setuid_text;
    if (geteuid() != 0 &&
        fgetxattr(fd, "security.capability", capabilities, sizeof capabilities) > 0)
        return capabilities_text;
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
    if (needs_library(fd, &h, "libasan.so") || needs_library(fd, &h, "libclang_rt.asan"))
        return "uses AddressSanitizer, which aborts if another library is preloaded; "
               "set ASAN_OPTIONS=verify_asan_link_order=0";
    return NULL;
}

const char *record_explain(const char *program)
{
    char path[PATH_MAX], head[PATH_MAX];
    if (!record_find_program(program, X_OK, path))
        return NULL;
    // An interpreter may itself be a script. The kernel follows at most four interpreters.
    for (unsigned depth = 0; depth < 5; depth++) {
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0)
            return NULL;
        ssize_t n = read(fd, head, sizeof head - 1);
        head[n > 0 ? n : 0] = 0;
        bool script = follow_script(path, head, n > 0 ? (size_t)n : 0);
        const char *why = script ? NULL : explain_file(fd, head, (size_t)n);
        why = script || why ? why : explain_privileges(fd);
        close(fd);
        if (!script)
            return why;
    }
    return NULL;
}

// Returns 1 in secure mode, where the dynamic linker ignores LD_PRELOAD. Returns 0 otherwise, or -1
// if unknown.
static int is_secure(pid_t pid)
{
    union {
        char text[4096];
        uint64_t pairs[512];
    } auxv;
    ssize_t n = proc_file_read(pid, "auxv", auxv.text, sizeof auxv.text);
    for (ssize_t i = 0; i + 1 < n / (ssize_t)sizeof *auxv.pairs; i += 2) {
        if (auxv.pairs[i] == AT_SECURE)
            return auxv.pairs[i + 1] != 0;
    }
    return -1;
}

struct rights {
    bool ids_differ; // the real and effective IDs of the user or the group differ
    unsigned user;   // effective user ID
    unsigned long long capabilities;
};

static bool read_rights(pid_t pid, struct rights *r)
{
    char text[4096];
    unsigned real[2], effective[2];
    const char *uids, *gids, *caps;
    if (proc_file_read(pid, "status", text, sizeof text) < 0 || !(uids = strstr(text, "\nUid:")) ||
        !(gids = strstr(text, "\nGid:")) || !(caps = strstr(text, "\nCapEff:")) ||
        sscanf(uids, "\nUid: %u %u", &real[0], &effective[0]) != 2 ||
        sscanf(gids, "\nGid: %u %u", &real[1], &effective[1]) != 2 ||
        sscanf(caps, "\nCapEff: %llx", &r->capabilities) != 1)
        return false;
    r->ids_differ = real[0] != effective[0] || real[1] != effective[1];
    r->user = effective[0];
    return true;
}

// Explains why a process is not recorded, if only root may open the process's files.
static const char *explain_closed(pid_t pid)
{
    struct rights r;
    if (!read_rights(pid, &r))
        return NULL;
    if (r.ids_differ)
        return setuid_text;
    return r.capabilities && r.user != 0 ? capabilities_text : NULL;
}

// Names the security module that started the process in secure mode. An AppArmor label ends with a
// mode in parentheses.
static const char *explain_policy(pid_t pid)
{
    char text[256];
    if (proc_file_read(pid, "attr/apparmor/current", text, sizeof text) <= 0)
        proc_file_read(pid, "attr/current", text, sizeof text);
    if (strstr(text, " ("))
        return "was started in secure mode by its AppArmor profile, which disables LD_PRELOAD";
    if (strchr(text, ':'))
        return "was started in secure mode by the SELinux policy, which disables LD_PRELOAD";
    return "was started in secure mode, which disables LD_PRELOAD";
}

static const char *explain_secure(int fd, pid_t pid)
{
    struct stat st;
    struct rights r;
    char capabilities[64];
    if (fstat(fd, &st) == 0 && st.st_mode & (S_ISUID | S_ISGID))
        return setuid_text;
    if (fgetxattr(fd, "security.capability", capabilities, sizeof capabilities) > 0)
        return capabilities_text;
    if (read_rights(pid, &r) && r.ids_differ)
        return "was started with user or group IDs that differ, which disables LD_PRELOAD";
    return explain_policy(pid);
}

static const char *find_variable(const char *environment, size_t n, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = environment; at < environment + n; at += strlen(at) + 1) {
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return at + length + 1;
    }
    return NULL;
}

static bool is_gone(pid_t pid)
{
    char path[64], exe[8];
    snprintf(path, sizeof path, "/proc/%ld/exe", (long)pid);
    return readlink(path, exe, sizeof exe) < 0 && (errno == ENOENT || errno == ESRCH);
}

// Returns false during exec and at exit, when the process has no environment and /proc/PID/environ
// is empty.
static bool has_environment(pid_t pid)
{
    char text[2048];
    proc_file_read(pid, "stat", text, sizeof text);
    return proc_file_stat(text, PROC_FILE_ENV_END) != 0;
}

// Checks the environment. Sets *seen if the environment was read, which shows that the process had
// not ended.
static const char *explain_environment(pid_t pid, const char *dir, bool *seen)
{
    static const size_t most = 4 << 20; // exec accepts 2 MiB by default
    char *text = malloc(most);
    ssize_t n = text ? proc_file_read(pid, "environ", text, most) : -1;
    const char *why = NULL;
    *seen = n > 0;
    if (n > 0 || (n == 0 && has_environment(pid))) {
        const char *preload = find_variable(text, (size_t)n, "LD_PRELOAD");
        const char *session = find_variable(text, (size_t)n, SPOOL_ENV_DIR);
        bool preloaded = preload && strstr(preload, "libheaptape.so"),
             named = session && strcmp(session, dir) == 0;
        why = !n || (!preloaded && !session)
                  ? "was started with an environment without LD_PRELOAD and " SPOOL_ENV_DIR
              : !preloaded ? "was started without libheaptape.so in LD_PRELOAD"
              : !session   ? "was started without " SPOOL_ENV_DIR " in its environment"
              : !named     ? "belongs to another recording, by its " SPOOL_ENV_DIR
                           : NULL;
    }
    free(text);
    return why;
}

// Returns true if the process has a root directory in which the file does not exist.
static bool is_absent(pid_t pid, const char *file)
{
    char path[PATH_MAX + 64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%ld/root%s", (long)pid, file);
    if (stat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR))
        return false;
    // If this fails, the process has ended, or its root directory cannot be examined.
    snprintf(path, sizeof path, "/proc/%ld/root/", (long)pid);
    return stat(path, &st) == 0;
}

static bool is_read_only(pid_t pid, const char *folder)
{
    char path[PATH_MAX + 64];
    struct statvfs fs;
    snprintf(path, sizeof path, "/proc/%ld/root%s", (long)pid, folder);
    return statvfs(path, &fs) == 0 && fs.f_flag & ST_RDONLY;
}

static const char *explain_root(pid_t pid, const struct unrecorded_how *how)
{
#define ELSEWHERE "is in another root directory or mount namespace, where "
    if (is_absent(pid, how->library))
        return ELSEWHERE "libheaptape.so was not found";
    if (is_absent(pid, how->dir))
        return ELSEWHERE "the directory of the recording was not found";
    if (is_read_only(pid, how->dir))
        return ELSEWHERE "the directory of the recording is read-only";
#undef ELSEWHERE
    return NULL;
}

// Like explain_file, but with a cache, because process trees execute the same few files many times,
// and explain_file takes 17 us. Sets *st.
static const char *explain_executable(int fd, struct stat *st)
{
    enum { KNOWN = 16 };
    static _Thread_local struct {
        struct stat st;
        const char *why;
    } known[KNOWN];
    char head[PATH_MAX];
    if (fstat(fd, st) < 0)
        return NULL;
    size_t at = (size_t)(st->st_ino % KNOWN);
    const struct stat *of = &known[at].st;
    if (st->st_dev == of->st_dev && st->st_ino == of->st_ino && st->st_size == of->st_size &&
        st->st_ctim.tv_sec == of->st_ctim.tv_sec && st->st_ctim.tv_nsec == of->st_ctim.tv_nsec)
        return known[at].why;
    ssize_t n = read(fd, head, sizeof head);
    known[at].why = n > 0 ? explain_file(fd, head, (size_t)n) : NULL;
    known[at].st = *st;
    return known[at].why;
}

static const char *explain_process(struct unrecorded_image *to, pid_t pid,
                                   const struct unrecorded_how *how)
{
    char path[64];
    struct stat st = {0};
    snprintf(path, sizeof path, "/proc/%ld/exe", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool closed = fd < 0 && (errno == EACCES || errno == EPERM), seen = false;
    if (fd < 0 && stat(path, &st) < 0)
        st.st_ino = 0;
    const char *why = fd >= 0 ? explain_executable(fd, &st) : closed ? explain_closed(pid) : NULL;
    to->device = st.st_dev;
    to->inode = st.st_ino;
    int secure = why || fd < 0 ? 0 : is_secure(pid);
    if (secure)
        why = secure > 0 ? explain_secure(fd, pid) : explain_privileges(fd);
    if (!why && fd >= 0)
        why = explain_environment(pid, how->dir, &seen);
    if (!why && fd >= 0)
        why = explain_root(pid, how);
    proc_file_close(fd);
    to->gone = !why && !seen && is_gone(pid);
    return why;
}

// Follows the same rules as producer_is_followed.
static bool is_followed(pid_t pid, const struct unrecorded_how *how)
{
    char path[64], exe[PATH_MAX], text[4096];
    long parent = 0;
    if (strcmp(how->follow, "all") == 0)
        return true;
    const char *line =
        proc_file_read(pid, "status", text, sizeof text) > 0 ? strstr(text, "\nPPid:") : NULL;
    if (line && sscanf(line, "\nPPid: %ld", &parent) == 1 && parent == getpid())
        return true;
    snprintf(path, sizeof path, "/proc/%ld/exe", (long)pid);
    ssize_t n = readlink(path, exe, sizeof exe - 1);
    exe[n > 0 ? n : 0] = 0;
    const char *slash = strrchr(exe, '/');
    return slash && strcmp(how->follow, "none") != 0 && fnmatch(how->follow, slash + 1, 0) == 0;
}

void unrecorded_inspect(struct unrecorded_image *to, pid_t pid, const struct unrecorded_how *how)
{
    char name[64];
    *to = (struct unrecorded_image){.followed = true};
    ssize_t n = proc_file_read(pid, "comm", name, sizeof name);
    if (n > 0)
        snprintf(to->name, sizeof to->name, "%.*s", (int)strcspn(name, "\n"), name);
    to->own_pid = lifetime_own_pid(pid);
    const char *why = explain_process(to, pid, how);
    if (how->attached)
        why = "was executed by a process that --pid attached to";
    snprintf(to->why, sizeof to->why, "%s", why ? why : "");
    to->followed = is_followed(pid, how);
    // If the process has ended, assume that it had the recorder's limits.
    to->limit = limit_find(to->gone ? 0 : pid, 0);
}
