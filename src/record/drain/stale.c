// Removes directories left behind by killed recorders.
//
// A recorder locks its session file before it renames the file to its final name, and keeps the
// lock. The next recorder of the same user removes a directory if its session file is unlocked and
// its spools are unused. A directory without a session file is removed only if it is older than
// BEGINNING_S, because a recorder may be starting in a newer directory. Sessions recorded without a
// recorder are kept for --collect.
#include "record/drain/drain_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// Limit on recursion: programs can create directories in a session owned by root.
enum { MAX_DEPTH = 16 };

// Longer than a recorder takes from creating a directory to creating its session file.
enum { BEGINNING_S = 60 };

int stale_lock(int fd)
{
    return flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
}

static int open_folder(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

// Returns true if the session was recorded without a recorder. Accepts any version. The version is
// the last byte of the magic.
static bool has_no_recorder(int fd)
{
    struct spool_session s;
    return pread(fd, &s, sizeof s, 0) == (ssize_t)sizeof s &&
           (s.magic ^ SPOOL_SESSION_MAGIC) << 8 == 0 && (s.flags & SPOOL_NO_RECORDER);
}

// Returns true if the file is a session file whose recorder is alive, or a spool that a process
// uses.
static bool is_in_use(int dir_fd, const char *name)
{
    int fd = openat(dir_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0)
        return errno != ELOOP && errno != ENOENT;
    bool lives = false;
    if (strcmp(name, SPOOL_SESSION_FILE) == 0)
        lives = has_no_recorder(fd) || stale_lock(fd) < 0;
    else if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        lives = !lifetime_is_unused(fd);
    close(fd);
    return lives;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

// If `remove` is set, removes the contents of a directory. Otherwise returns true if a recorder or
// process uses any of the contents.
static bool walk_folder(int dir_fd, bool remove, unsigned depth)
{
    DIR *d = fdopendir(dup(dir_fd));
    struct dirent *item;
    // Check the session first. While a lease on a spool is held, the recorder of the session cannot
    // open the spool.
    bool found = !remove && is_in_use(dir_fd, SPOOL_SESSION_FILE);
    if (!d)
        return true;
    rewinddir(d);
    while (!found && (item = readdir(d))) {
        if (is_dots(item->d_name))
            continue;
        int inner = open_folder(dir_fd, item->d_name);
        if (inner >= 0)
            found = depth < MAX_DEPTH && walk_folder(inner, remove, depth + 1);
        else
            found = !remove && is_in_use(dir_fd, item->d_name);
        if (remove)
            unlinkat(dir_fd, item->d_name, inner >= 0 ? AT_REMOVEDIR : 0);
        proc_file_close(inner);
    }
    closedir(d);
    return found;
}

int stale_find_session(int dir_fd)
{
    if (faccessat(dir_fd, SPOOL_SESSION_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return dup(dir_fd);
    DIR *d = fdopendir(dup(dir_fd));
    struct dirent *item;
    int found = -1;
    while (d && found < 0 && (item = readdir(d))) {
        int inner = is_dots(item->d_name) ? -1 : open_folder(dir_fd, item->d_name);
        if (inner >= 0 && faccessat(inner, SPOOL_SESSION_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            found = inner;
        else
            proc_file_close(inner);
    }
    proc_file_close_folder(d);
    return found;
}

static bool is_stale(int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || st.st_uid != geteuid())
        return false;
    int session = time(NULL) - st.st_ctime < BEGINNING_S ? stale_find_session(fd) : 0;
    if (session > 0)
        close(session);
    return session >= 0 && !walk_folder(fd, false, 0);
}

void stale_sweep(const char *folder)
{
    DIR *d = opendir(folder);
    struct dirent *item;
    while (d && (item = readdir(d))) {
        if (strncmp(item->d_name, STALE_PREFIX, strlen(STALE_PREFIX)) != 0)
            continue;
        int fd = open_folder(dirfd(d), item->d_name);
        if (fd >= 0 && is_stale(fd)) {
            walk_folder(fd, true, 0);
            unlinkat(dirfd(d), item->d_name, AT_REMOVEDIR);
        }
        proc_file_close(fd);
    }
    proc_file_close_folder(d);
}

void stale_remove(const char *path)
{
    int fd = open_folder(AT_FDCWD, path);
    if (fd < 0)
        return;
    walk_folder(fd, true, 0);
    close(fd);
    rmdir(path);
}
