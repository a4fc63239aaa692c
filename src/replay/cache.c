#include "replay/cache.h"
#include "base/buf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <xxhash.h>

static const char suffix[] = ".htp";

static bool is_private(const struct stat *st)
{
    return st->st_uid == geteuid() && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

// Creates the cache directory if necessary, and returns its path. Returns NULL if other users could
// write to the directory.
static char *find_folder(void)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *parent = NULL, *folder = NULL;
    struct stat st;
    if (asprintf(&parent, "%s%s",
                 base && base[0] == '/' ? base
                 : home                 ? home
                                        : "",
                 base && base[0] == '/' ? "" : "/.cache") < 0)
        return NULL;
    if (parent[0] == '/' && asprintf(&folder, "%s/heaptape", parent) < 0)
        folder = NULL;
    // The XDG Base Directory Specification requires these permissions.
    if (folder && mkdir(folder, 0700) < 0 && errno == ENOENT && mkdir(parent, 0700) == 0)
        mkdir(folder, 0700);
    if (folder && (lstat(folder, &st) < 0 || !S_ISDIR(st.st_mode) || !is_private(&st))) {
        free(folder);
        folder = NULL;
    }
    free(parent);
    return folder;
}

static int hash_file(int fd, XXH3_state_t *state)
{
    enum { STEP = 1 << 18 };
    char *bytes = malloc(STEP);
    ssize_t n = bytes ? 1 : -1;
    for (off_t at = 0; n > 0; at += n) {
        n = pread(fd, bytes, STEP, at);
        if (n > 0)
            XXH3_128bits_update(state, bytes, (size_t)n);
    }
    free(bytes);
    return n < 0 ? -EIO : 0;
}

static uint64_t modified_at(int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return 0;
    return (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec +
           (uint64_t)st.st_size;
}

void cache_init(struct cache *c, const struct workload_file *w)
{
    XXH3_state_t *state = XXH3_createState();
    *c = (struct cache){.folder = find_folder(), .modified = modified_at(w->in.fd)};
    if (c->folder && state && XXH3_128bits_reset(state) == XXH_OK &&
        hash_file(w->in.fd, state) == 0) {
        XXH128_hash_t hash = XXH3_128bits_digest(state);
        c->workload = (struct plan_key){{hash.low64, hash.high64}};
    } else {
        cache_release(c);
    }
    XXH3_freeState(state);
}

void cache_release(struct cache *c)
{
    free(c->folder);
    free(c->path);
    *c = (struct cache){0};
}

// Sets the key and path of the plan for these settings. Both depend on the executable, because
// another build may produce a different plan or use a different layout.
static bool set_plan_path(struct cache *c, const struct plan_settings *s)
{
    struct stat heaptape;
    if (!c->folder || stat("/proc/self/exe", &heaptape) < 0)
        return false;
    struct {
        struct plan_key workload;
        uint64_t heaptape[4], streamed, memory_bytes, one_thread, stats_every, trim_every, paced;
        double ns_per_stamp;
    } parts = {.workload = c->workload,
               .heaptape = {heaptape.st_ino, (uint64_t)heaptape.st_size,
                            (uint64_t)heaptape.st_mtim.tv_sec, (uint64_t)heaptape.st_mtim.tv_nsec},
               .streamed = s->streamed,
               .memory_bytes = s->streamed ? s->memory_bytes : 0,
               .one_thread = s->one_thread,
               .stats_every = s->stats_every,
               .trim_every = s->trim_every,
               .paced = s->paced,
               .ns_per_stamp = s->ns_per_stamp};
    XXH128_hash_t hash = XXH3_128bits(&parts, sizeof parts);
    c->key = (struct plan_key){{hash.low64, hash.high64}};
    free(c->path);
    c->path = NULL;
    return asprintf(&c->path, "%s/%016llx%016llx%s", c->folder, (unsigned long long)hash.high64,
                    (unsigned long long)hash.low64, suffix) > 0;
}

bool cache_load(struct cache *c, struct plan **p, const char *name, const struct plan_settings *s)
{
    struct stat st;
    if (!set_plan_path(c, s))
        return false;
    int fd = open(c->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    int rc = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && is_private(&st) ? 0 : -EPERM;
    if (rc == 0)
        rc = plan_load(p, name, s, &c->key, fd, NULL);
    if (rc == 0)
        utimensat(AT_FDCWD, c->path, NULL, 0); // marks the plan as recently used
    if (rc < 0)
        close(fd);
    if (rc == -EBADMSG)
        unlink(c->path);
    return rc == 0;
}

int cache_open_file(struct cache *c, struct output *out, struct err *e)
{
    *out = (struct output){.fd = -1};
    return c->path ? output_open(out, c->path, OUTPUT_ASIDE | OUTPUT_FORCE, e) : -ENOENT;
}

struct kept {
    char name[NAME_MAX + 1];
    uint64_t bytes;
    struct timespec used;
};

static int by_use(const void *a, const void *b)
{
    const struct timespec x = ((const struct kept *)a)->used, y = ((const struct kept *)b)->used;
    if (x.tv_sec != y.tv_sec)
        return x.tv_sec < y.tv_sec ? -1 : 1;
    return x.tv_nsec < y.tv_nsec ? -1 : x.tv_nsec > y.tv_nsec;
}

static int list_kept(DIR *folder, struct kept **kept, size_t *n, uint64_t *bytes)
{
    size_t capacity = 0;
    for (struct dirent *d; (d = readdir(folder));) {
        struct stat st;
        // Unfinished files of killed processes, NAME.htp.tmp-PID, also contain the suffix.
        if (!strstr(d->d_name, suffix) ||
            fstatat(dirfd(folder), d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        struct kept k = {.bytes = (uint64_t)st.st_size, .used = st.st_mtim};
        snprintf(k.name, sizeof k.name, "%s", d->d_name);
        if (HT_APPEND(kept, n, &capacity, k) < 0)
            return -ENOMEM;
        *bytes += k.bytes;
    }
    return 0;
}

static uint64_t max_bytes(const char *folder, uint64_t kept_bytes)
{
    struct statvfs fs;
    if (statvfs(folder, &fs) < 0)
        return 0;
    uint64_t share = ((uint64_t)fs.f_bavail * fs.f_frsize + kept_bytes) / 4;
    return share < CACHE_MAX_BYTES ? share : CACHE_MAX_BYTES;
}

// Removes the least recently used plans until there is space for `bytes` more bytes. Returns false
// if there is not enough space even then.
static bool make_room(const struct cache *c, uint64_t bytes)
{
    struct kept *kept = NULL;
    size_t n = 0;
    uint64_t kept_bytes = 0;
    DIR *folder = opendir(c->folder);
    bool fits = folder && list_kept(folder, &kept, &n, &kept_bytes) == 0;
    uint64_t max = max_bytes(c->folder, kept_bytes);
    fits = fits && bytes <= max;
    if (fits && n)
        qsort(kept, n, sizeof *kept, by_use);
    for (size_t i = 0; fits && i < n && kept_bytes + bytes > max; i++) {
        if (unlinkat(dirfd(folder), kept[i].name, 0) == 0)
            kept_bytes -= kept[i].bytes;
    }
    free(kept);
    if (folder)
        closedir(folder);
    return fits;
}

void cache_store(struct cache *c, const struct plan *p, const struct workload_file *w,
                 struct output *out)
{
    bool unchanged = c->path && modified_at(w->in.fd) == c->modified;
    if (!unchanged || plan_save(p, &c->key, out, NULL) < 0 || !make_room(c, out->offset))
        return;
    output_commit(out, NULL);
}

void cache_drop(const struct cache *c)
{
    if (c->path)
        unlink(c->path);
}
