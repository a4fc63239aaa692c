// What recorders have left behind that were killed.
//
// A recorder holds a lock on its session's file. A folder where nobody does, whose processes are all gone and which was made
// more than a day ago is removed by the next recorder of the same user; until then what had not been drained can be
// collected.
#include "record/drain_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define KEEP_SECONDS (24 * 3600)

int stale_lock(int fd)
{
    return flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
}

static int open_folder(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

// Does the process that made the spool live, or the recorder whose session it is?
static bool lives(int dir_fd, const char *name)
{
    struct spool_header head;
    int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    size_t want = offsetof(struct spool_header, max_chunks);
    bool read_it = fd >= 0 && pread(fd, &head, want, 0) == (ssize_t)want && head.magic == SPOOL_MAGIC;
    bool locked = fd >= 0 && strcmp(name, SPOOL_SESSION_FILE) == 0 && stale_lock(fd) < 0;
    if (fd >= 0)
        close(fd);
    return locked || (read_it && drain_find_process(head.pid, head.process_start_time) > 0);
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

// Looks through a folder, and the one in it where root's sessions are: does anybody of it live? Or removes all.
static bool walk(int dir_fd, bool remove)
{
    DIR *d = fdopendir(dup(dir_fd));
    struct dirent *item;
    bool found = false;
    if (!d)
        return true;
    rewinddir(d);
    while (!found && (item = readdir(d))) {
        if (is_dots(item->d_name))
            continue;
        int inner = open_folder(dir_fd, item->d_name);
        found = inner >= 0 ? walk(inner, remove) : !remove && lives(dir_fd, item->d_name);
        if (remove)
            unlinkat(dir_fd, item->d_name, inner >= 0 ? AT_REMOVEDIR : 0);
        if (inner >= 0)
            close(inner);
    }
    closedir(d);
    return found;
}

static bool is_stale(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_uid == geteuid() && time(NULL) - st.st_mtime > KEEP_SECONDS && !walk(fd, false);
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
            walk(fd, true);
            unlinkat(dirfd(d), item->d_name, AT_REMOVEDIR);
        }
        if (fd >= 0)
            close(fd);
    }
    if (d)
        closedir(d);
}
