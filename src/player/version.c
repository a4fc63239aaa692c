// What allocators say of their version. Each has a function of its own for that.
#include "player/player.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <malloc.h>
#include <string.h>

static size_t put(char *text, size_t size, size_t at, const char *more)
{
    while (*more && at + 1 < size)
        text[at++] = *more++;
    text[at] = 0;
    return at;
}

static size_t put_number(char *text, size_t size, size_t at, unsigned n)
{
    char digits[12];
    size_t i = sizeof digits - 1;
    digits[i] = 0;
    do {
        digits[--i] = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    return put(text, size, at, digits + i);
}

static bool jemalloc_version(char *text, size_t size)
{
    int (*mallctl)(const char *, void *, size_t *, void *, size_t);
    const char *version = NULL;
    size_t bytes = sizeof version;
    *(void **)&mallctl = dlsym(RTLD_DEFAULT, "mallctl");
    if (!mallctl || mallctl("version", &version, &bytes, NULL, 0) != 0 || !version)
        return false;
    put(text, size, 0, version);
    text[strcspn(text, "-")] = 0; // the commit's hash follows
    return true;
}

static bool tcmalloc_version(char *text, size_t size)
{
    const char *(*tc_version)(int *, int *, const char **);
    int major, minor;
    const char *patch;
    *(void **)&tc_version = dlsym(RTLD_DEFAULT, "tc_version");
    if (!tc_version)
        return false;
    tc_version(&major, &minor, &patch);
    size_t at = put_number(text, size, 0, (unsigned)major);
    at = put(text, size, at, ".");
    put_number(text, size, at, (unsigned)minor);
    return true;
}

// 212 is 2.1.2.
static bool mimalloc_version(char *text, size_t size)
{
    int (*mi_version)(void);
    *(void **)&mi_version = dlsym(RTLD_DEFAULT, "mi_version");
    if (!mi_version)
        return false;
    unsigned version = (unsigned)mi_version();
    size_t at = put_number(text, size, 0, version / 100);
    at = put(text, size, at, ".");
    at = put_number(text, size, at, version / 10 % 10);
    at = put(text, size, at, ".");
    put_number(text, size, at, version % 10);
    return true;
}

static bool libc_version(char *text, size_t size)
{
    Dl_info of_malloc, of_libc;
    if (!dladdr((void *)malloc, &of_malloc) || !dladdr((void *)gnu_get_libc_version, &of_libc) ||
        of_malloc.dli_fbase != of_libc.dli_fbase)
        return false;
    put(text, size, 0, gnu_get_libc_version());
    return true;
}

void player_find_version(char *text, size_t size)
{
    text[0] = 0;
    if (!libc_version(text, size) && !jemalloc_version(text, size) && !tcmalloc_version(text, size))
        mimalloc_version(text, size);
}
