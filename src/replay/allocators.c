#include "replay/allocators.h"

#include <dlfcn.h>
#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCUDO_FILE "/lib/linux/libclang_rt.scudo_standalone-*64.so"

// Names of variables and glibc tunables that do not configure an allocator.
#define ANY_ALLOCATOR "LABEL|LD_*|HEAPTAPE_*|glibc.@(cpu|elision|gmon|mem|pthread|rtld).*"

const struct allocator_info allocator_infos[] = {
    {"glibc",
     {NULL},
     "mallopt(3), GLIBC_TUNABLES",
     "MALLOC_@(ARENA_MAX|ARENA_TEST|@(CHECK|MMAP_MAX|MMAP_THRESHOLD|PERTURB|TOP_PAD|TRIM_THRESHOLD)"
     "_)"
     "|glibc.malloc.@(arena_max|arena_test|check|hugetlb|mmap_max|mmap_threshold|mxfast|perturb"
     "|tcache_count|tcache_max|tcache_unsorted_limit|top_pad|trim_threshold)"},
    {"jemalloc", {"libjemalloc.so.2", "libjemalloc.so"}, "MALLOC_CONF; jemalloc(3)", "MALLOC_CONF"},
    {"tcmalloc",
     {"libtcmalloc_minimal.so.4", "libtcmalloc.so.4", "libtcmalloc_minimal.so"},
     "TCMALLOC_*; gperftools",
     "TCMALLOC_*|MALLOCSTATS|HEAP*"},
    {"mimalloc",
     {"libmimalloc.so.3", "libmimalloc.so.2", "libmimalloc.so"},
     "MIMALLOC_*",
     "MIMALLOC_*|mimalloc_*"},
    {"tbb", {"libtbbmalloc_proxy.so.2", "libtbbmalloc_proxy.so"}, "TBB_MALLOC_*", "TBB_*"},
    {"scudo",
     {"/usr/lib/llvm-*/lib/clang/*" SCUDO_FILE, "/usr/lib*/clang/*" SCUDO_FILE},
     "SCUDO_OPTIONS",
     "SCUDO_*"},
    {NULL, {NULL}, NULL, NULL},
};

static const char glibc_tunables[] = "GLIBC_TUNABLES=";

enum { MAX_INCLUDES = 4 }; // maximum depth of nested includes

const char *allocator_preloaded(void)
{
    Dl_info of_malloc, of_libc, of_this;
    const char *list = getenv("LD_PRELOAD");
    if (!list || !*list || !dladdr((void *)malloc, &of_malloc) ||
        !dladdr((void *)gnu_get_libc_version, &of_libc) ||
        !dladdr((void *)allocator_preloaded, &of_this))
        return NULL;
    if (of_malloc.dli_fbase == of_libc.dli_fbase || of_malloc.dli_fbase == of_this.dli_fbase)
        return NULL;
    // A preloaded recorder is not an allocator: it forwards calls to another malloc.
    void *library = dlopen(of_malloc.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    bool records = library && dlsym(library, "heaptape_mark");
    if (library)
        dlclose(library);
    return records ? NULL : of_malloc.dli_fname;
}

// Searches a folder, whose name has n bytes.
static int try_folder(const char *folder, size_t n, const char *file, char **path)
{
    char text[PATH_MAX];
    if (folder[0] != '/' ||
        snprintf(text, sizeof text, "%.*s/%s", (int)n, folder, file) >= (int)sizeof text ||
        access(text, R_OK) < 0)
        return -ENOENT;
    *path = realpath(text, NULL);
    return *path ? 0 : -ENOENT;
}

static int try_list(const char *list, const char *file, char **path)
{
    int rc = -ENOENT;
    for (size_t n; rc == -ENOENT && *list; list += n + (list[n] == ':')) {
        n = strcspn(list, ":");
        rc = try_folder(list, n, file, path);
    }
    return rc;
}

static int try_file_of_folders(const char *name, unsigned depth, const char *file, char **path);

static int try_include(const char *pattern, unsigned depth, const char *file, char **path)
{
    glob_t found;
    int rc = -ENOENT;
    if (depth >= MAX_INCLUDES || glob(pattern, 0, NULL, &found) != 0)
        return rc;
    for (size_t i = 0; rc == -ENOENT && i < found.gl_pathc; i++)
        rc = try_file_of_folders(found.gl_pathv[i], depth + 1, file, path);
    globfree(&found);
    return rc;
}

// Searches the directories listed in a file in ldconfig(8) format. Each line contains a directory
// or `include PATTERN`. # begins a comment.
static int try_file_of_folders(const char *name, unsigned depth, const char *file, char **path)
{
    char line[PATH_MAX];
    int rc = -ENOENT;
    FILE *f = fopen(name, "re");
    if (!f)
        return rc;
    while (rc == -ENOENT && fgets(line, sizeof line, f)) {
        char *text = line + strspn(line, " \t");
        text[strcspn(text, "#\n")] = 0;
        for (size_t n = strlen(text); n && (text[n - 1] == ' ' || text[n - 1] == '\t'); n--)
            text[n - 1] = 0;
        if (strncmp(text, "include ", 8) == 0)
            rc = try_include(text + 8, depth, file, path);
        else
            rc = try_folder(text, strlen(text), file, path);
    }
    fclose(f);
    return rc;
}

int allocator_find_file(const char *file, char **path)
{
    const char *list = getenv("LD_LIBRARY_PATH");
    int rc = list ? try_list(list, file, path) : -ENOENT;
    if (rc == -ENOENT)
        rc = try_file_of_folders("/etc/ld.so.conf", 0, file, path);
    if (rc == -ENOENT)
        rc = try_list("/lib64:/usr/lib64:/lib:/usr/lib:/usr/local/lib", file, path);
    return rc;
}

// Returns the last match. Because glob() sorts by name, this is usually the highest version.
static int find_pattern(const char *pattern, char **path)
{
    glob_t found;
    if (glob(pattern, 0, NULL, &found) != 0)
        return -ENOENT;
    *path = strdup(found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
    return *path ? 0 : -ENOMEM;
}

int allocator_find(const struct allocator_info *info, char **library)
{
    *library = NULL;
    if (!info->files[0])
        return 0;
    int rc = -ENOENT;
    for (size_t i = 0;
         rc == -ENOENT && i < sizeof info->files / sizeof *info->files && info->files[i]; i++) {
        const char *file = info->files[i];
        rc = strchr(file, '/') ? find_pattern(file, library) : allocator_find_file(file, library);
    }
    return rc;
}

static int find_by_name(struct allocator *a, struct err *e)
{
    const struct allocator_info *info = allocator_infos;
    while (info->name && strcmp(info->name, a->name) != 0)
        info++;
    if (!info->name)
        return err_set(e, -EINVAL,
                       "%s: unknown allocator (try a path, or a name from 'heaptape allocators')",
                       a->name);
    a->info = info;
    int rc = allocator_find(info, &a->library);
    if (rc == -ENOENT)
        return err_set(e, rc, "%s: %s is not installed", a->name, info->files[0]);
    return rc < 0 ? err_no_memory(e, NULL) : 0;
}

static int find_by_path(struct allocator *a, struct err *e)
{
    struct stat st;
    char *real = realpath(a->name, NULL);
    if (!real)
        return err_set_errno(e, "%s", a->name);
    int rc = stat(real, &st) < 0 ? -errno : 0;
    if (rc == 0 && !S_ISREG(st.st_mode))
        rc = err_set(e, -EINVAL, "%s: is not a shared library", a->name);
    char *name = strdup(basename(a->name));
    if (rc < 0 || !name) {
        free(real);
        free(name);
        return rc < 0 ? rc : err_no_memory(e, NULL);
    }
    free(a->name);
    a->name = name;
    a->library = real;
    return 0;
}

// Replaces tunable number `i`, or appends it if there are `i` tunables. `a` owns `text` afterwards,
// and `text` is freed after an error.
static int set_tunable(struct allocator *a, size_t i, char *text, struct err *e)
{
    char **grown = text ? realloc(a->tunables, (a->n_tunables + 1) * sizeof *grown) : NULL;
    if (!grown) {
        free(text);
        return err_no_memory(e, NULL);
    }
    a->tunables = grown;
    if (i == a->n_tunables)
        a->n_tunables++;
    else
        free(grown[i]);
    grown[i] = text;
    return 0;
}

// Appends `glibc.NAME=VALUE:…` to the tunable GLIBC_TUNABLES.
static int join_tunables(struct allocator *a, const char *text, size_t n, struct err *e)
{
    for (const char *at = text, *end; at < text + n; at = end + 1) {
        end = memchr(at, ':', (size_t)(text + n - at)) ?: text + n;
        if (strncmp(at, "glibc.", 6) != 0 || !memchr(at, '=', (size_t)(end - at)))
            return err_set(e, -EINVAL, "%s: the tunable '%.*s' is not glibc.NAME=VALUE", a->name,
                           (int)(end - at), at);
    }
    size_t i = 0;
    while (i < a->n_tunables &&
           strncmp(a->tunables[i], glibc_tunables, strlen(glibc_tunables)) != 0)
        i++;
    bool is_new = i == a->n_tunables;
    char *joined;
    if (asprintf(&joined, "%s%s%.*s", is_new ? glibc_tunables : a->tunables[i], is_new ? "" : ":",
                 (int)n, text) < 0)
        joined = NULL;
    return set_tunable(a, i, joined, e);
}

static int add_tunable(struct allocator *a, const char *text, size_t n, struct err *e)
{
    size_t skipped = strlen(glibc_tunables);
    if (strncmp(text, glibc_tunables, skipped) == 0)
        return join_tunables(a, text + skipped, n - skipped, e);
    if (strncmp(text, "glibc.", 6) == 0)
        return join_tunables(a, text, n, e);
    const char *equals = memchr(text, '=', n);
    if (!equals || equals == text || memchr(text, '.', (size_t)(equals - text)))
        return err_set(e, -EINVAL,
                       "%s: the tunable '%.*s' is not VARIABLE=VALUE or glibc.NAME=VALUE", a->name,
                       (int)n, text);
    if (strncmp(text, "LD_PRELOAD=", strlen("LD_PRELOAD=")) == 0)
        return err_set(e, -EINVAL,
                       "%s: LD_PRELOAD cannot be a tunable (use the library as the allocator)",
                       a->name);
    return set_tunable(a, a->n_tunables, strndup(text, n), e);
}

// Returns the length of the first tunable. Values may contain commas (as in MALLOC_CONF), so a
// comma ends the tunable only if VARIABLE= follows.
static size_t tunable_bytes(const char *text)
{
    const char *end = text;
    for (;;) {
        end += strcspn(end, ",");
        if (!*end)
            break;
        size_t name =
            strspn(end + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_.0123456789");
        if (name && end[1 + name] == '=')
            break;
        end++;
    }
    return (size_t)(end - text);
}

int allocator_parse(struct allocator *a, const char *spec, struct err *e)
{
    *a = (struct allocator){0};
    size_t n = strcspn(spec, ",");
    if (n == 0)
        return err_set(e, -EINVAL, "'%s': an allocator's name or path is missing", spec);
    a->name = strndup(spec, n);
    if (!a->name)
        return err_no_memory(e, NULL);
    int rc = strchr(a->name, '/') ? find_by_path(a, e) : find_by_name(a, e);
    for (const char *at = spec + n; rc == 0 && *at == ',';) {
        size_t bytes = tunable_bytes(++at);
        rc = add_tunable(a, at, bytes, e);
        at += bytes;
    }
    if (rc < 0)
        allocator_release(a);
    return rc;
}

bool allocator_find_unread(const struct allocator *a, char *name, size_t size)
{
    char names[512];
    if (!a->info)
        return false;
    snprintf(names, sizeof names, "@(" ANY_ALLOCATOR "|%s)", a->info->variables);
    for (size_t i = 0; i < a->n_tunables; i++) {
        const char *at = a->tunables[i];
        bool is_joined = strncmp(at, glibc_tunables, strlen(glibc_tunables)) == 0;
        at += is_joined ? strlen(glibc_tunables) : 0;
        while (*at) {
            snprintf(name, size, "%.*s", (int)strcspn(at, "="), at);
            if (fnmatch(names, name, FNM_EXTMATCH) != 0)
                return true;
            at += strcspn(at, is_joined ? ":" : "");
            at += *at == ':';
        }
    }
    return false;
}

void allocator_release(struct allocator *a)
{
    for (size_t i = 0; i < a->n_tunables; i++)
        free(a->tunables[i]);
    free(a->tunables);
    free(a->name);
    free(a->library);
    *a = (struct allocator){0};
}
