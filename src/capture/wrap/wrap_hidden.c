// Symbols of the executable that the loader does not know: a function called malloc in its file or
// in its debug file.
#include "capture/spool/entries.h"
#include "capture/wrap/wrap.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    PIECE_BYTES = 16384, // of a table that are read at once
    MAX_SECTIONS = 128,
    MAX_PLACES = 64,
    LONGEST_NAME = 32, // with the terminating 0
};

static const char malloc_name[] = "malloc"; // the end of all entries_malloc_names

static bool read_at(int fd, void *to, size_t bytes, uint64_t at)
{
    return syscall(SYS_pread64, fd, to, bytes, at) == (long)bytes;
}

// Places of the names of malloc in a table of names. A longer name may end there.
struct places {
    uint32_t at[MAX_PLACES];
    size_t n;
};

// Bytes of a table. Static, because the stack may be small; only the startup code uses it.
static union {
    char names[PIECE_BYTES];
    ElfW(Sym) symbols[PIECE_BYTES / sizeof(ElfW(Sym))];
    ElfW(Shdr) sections[MAX_SECTIONS];
} piece;

// Returns by how much a search for the name advances if `c` is the last byte of the compared part
// (Horspool's algorithm).
static size_t advance_for(char c)
{
    const char *last = c ? strrchr(malloc_name, c) : NULL;
    return sizeof malloc_name - (last ? (size_t)(last - malloc_name) + 1 : 0);
}

// Adds the names that end with the "malloc" at `i` in the piece.
static void add_names(size_t i, uint64_t offset, struct places *to)
{
    for (size_t k = 0; k < ENTRIES_PREFIXES && to->n < MAX_PLACES; k++) {
        size_t prefix = strlen(entries_malloc_names[k]) - (sizeof malloc_name - 1);
        if (prefix <= i && memcmp(piece.names + i - prefix, entries_malloc_names[k], prefix) == 0)
            to->at[to->n++] = (uint32_t)(offset + i - prefix);
    }
}

static void find_in_piece(size_t n, uint64_t offset, struct places *to)
{
    uint8_t advance[256];
    for (unsigned c = 0; c < sizeof advance; c++)
        advance[c] = (uint8_t)advance_for((char)c);
    for (size_t i = 0; i + sizeof malloc_name <= n;) {
        const char *at = piece.names + i;
        uint8_t last = (uint8_t)at[sizeof malloc_name - 1];
        if (!last && memcmp(at, malloc_name, sizeof malloc_name) == 0)
            add_names(i, offset, to);
        i += advance[last];
    }
}

static void find_places(int fd, const ElfW(Shdr) * names, struct places *to)
{
    // Pieces overlap, since a name may begin in one and end in the next.
    const size_t step = PIECE_BYTES - LONGEST_NAME;
    for (uint64_t at = 0; at < names->sh_size && at < UINT32_MAX; at += step) {
        uint64_t left = names->sh_size - at;
        size_t n = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        if (!read_at(fd, piece.names, n, names->sh_offset + at))
            return;
        find_in_piece(n, at, to);
    }
}

static bool is_malloc(const ElfW(Sym) * s, const struct places *places)
{
    bool is_named = false;
    for (size_t i = 0; i < places->n; i++)
        is_named |= s->st_name == places->at[i];
    return is_named && s->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(s->st_info) == STT_FUNC;
}

static bool has_function(int fd, const ElfW(Shdr) * symbols, const struct places *places)
{
    const size_t most = sizeof piece.symbols / sizeof *piece.symbols;
    uint64_t n = symbols->sh_size / sizeof(ElfW(Sym));
    for (uint64_t first = 0, count; first < n; first += count) {
        count = n - first < most ? n - first : most;
        if (!read_at(fd, piece.symbols, (size_t)count * sizeof(ElfW(Sym)),
                     symbols->sh_offset + first * sizeof(ElfW(Sym))))
            return false;
        for (uint64_t i = 0; i < count; i++) {
            if (is_malloc(&piece.symbols[i], places))
                return true;
        }
    }
    return false;
}

// Returns 1 if the file has a symbol of a function in entries_malloc_names, 0 if not, or -1 if it has no symbols.
static int defines_malloc(int fd)
{
    ElfW(Ehdr) h;
    ElfW(Shdr) symbols = {0}, names = {0};
    struct places places = {.n = 0};
    if (!read_at(fd, &h, sizeof h, 0) || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 ||
        h.e_shentsize != sizeof(ElfW(Shdr)) || h.e_shnum > MAX_SECTIONS ||
        !read_at(fd, piece.sections, h.e_shnum * sizeof(ElfW(Shdr)), h.e_shoff))
        return -1;
    for (unsigned i = 0; i < h.e_shnum; i++) {
        const ElfW(Shdr) *s = &piece.sections[i];
        if (s->sh_type == SHT_SYMTAB && s->sh_link < h.e_shnum) {
            symbols = *s;
            names = piece.sections[s->sh_link];
        }
    }
    if (!symbols.sh_size)
        return -1;
    find_places(fd, &names, &places);
    return places.n && has_function(fd, &symbols, &places);
}

int wrap_open_file(const char *path)
{
    return (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static int open_debug_file(const uint8_t *id)
{
    static const char prefix[] = "/usr/lib/debug/.build-id/", digits[] = "0123456789abcdef";
    char path[sizeof prefix + 2 * WRAP_BUILD_ID_BYTES + 16], *at = stpcpy(path, prefix);
    for (unsigned i = 0; i < WRAP_BUILD_ID_BYTES; i++) {
        *at++ = digits[id[i] >> 4];
        *at++ = digits[id[i] & 15];
        if (i == 0)
            *at++ = '/';
    }
    strcpy(at, ".debug");
    return wrap_open_file(path);
}

bool wrap_has_hidden_malloc(int executable, const uint8_t *build_id)
{
    int found = defines_malloc(executable), fd;
    if (found >= 0 || !build_id || (fd = open_debug_file(build_id)) < 0)
        return found > 0;
    found = defines_malloc(fd);
    close(fd);
    return found > 0;
}
