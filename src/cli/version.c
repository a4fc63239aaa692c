#include "cli/version.h"

#include "cli/paths.h"

#include <elfutils/libdwfl.h>
#include <elfutils/version.h>
#include <gnu/libc-version.h>
#include <json-c/json_c_version.h>
#include <limits.h>
#include <lz4.h>
#include <string.h>
#include <xxhash.h>
#include <zstd.h>

static void print_fact(FILE *to, const char *name, const char *value)
{
    fprintf(to, "%-14s%s\n", name, value);
}

static void print_library(FILE *to, const char *name, const char *built, const char *loaded)
{
    fprintf(to, "%-14s%s", name, loaded);
    if (strcmp(built, loaded) != 0)
        fprintf(to, " (built with %s)", built);
    fputc('\n', to);
}

static const char *xxhash_text(unsigned version, char out[static 32])
{
    snprintf(out, 32, "%u.%u.%u", version / 10000, version / 100 % 100, version % 100);
    return out;
}

static void print_libraries(FILE *to)
{
    char built[32], loaded[32];
    snprintf(built, sizeof built, "%d.%d", __GLIBC__, __GLIBC_MINOR__);
    print_library(to, "glibc", built, gnu_get_libc_version());
    print_library(to, "zstd", ZSTD_VERSION_STRING, ZSTD_versionString());
    print_library(to, "lz4", LZ4_VERSION_STRING, LZ4_versionString());
    print_library(to, "xxhash", xxhash_text(XXH_VERSION_NUMBER, built),
                  xxhash_text(XXH_versionNumber(), loaded));
    snprintf(built, sizeof built, "%d.%d", _ELFUTILS_VERSION / 1000, _ELFUTILS_VERSION % 1000);
    print_library(to, "elfutils", built, dwfl_version(NULL));
    print_library(to, "json-c", JSON_C_VERSION, json_c_version());
}

static void print_files(FILE *to)
{
    static const char *const names[] = {"libheaptape.so",       "libheaptape-musl.so",
                                        "heaptape-replay",      "libheaptape-null.so",
                                        "libheaptape-times.so", "libheaptape-receive.so",
                                        "libheaptape-upload.so"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[PATH_MAX];
        fprintf(to, "%-24s%s\n", names[i],
                paths_find(names[i], path, sizeof path) == 0 ? path : "not found");
    }
}

void version_print(FILE *to, bool verbose)
{
    fputs("heaptape " HEAPTAPE_VERSION "\n", to);
    if (!verbose)
        return;
#ifdef __clang__
    print_fact(to, "compiler", __VERSION__);
#else
    print_fact(to, "compiler", "gcc " __VERSION__);
#endif
    print_fact(to, "options", HEAPTAPE_BUILD_OPTIONS);
    print_fact(to, "architecture", HEAPTAPE_ARCHITECTURE);
    print_fact(to, "attach", "yes");
    print_libraries(to);
    print_files(to);
}
