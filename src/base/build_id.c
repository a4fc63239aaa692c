#include "base/build_id.h"

#include "base/elf_note.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MOST_BYTES = 256,       // maximum size of a build ID in bytes; usual sizes are 16 and 20
    MOST_SEGMENTS = 256,    // maximum number of segments examined
    MOST_NOTE_BYTES = 4096, // maximum number of bytes read per segment
};

static char *find_in_notes(const uint8_t *notes, size_t n)
{
    uint32_t bytes;
    const uint8_t *id = elf_note_build_id(notes, n, &bytes);
    char *text = id && bytes && bytes <= MOST_BYTES ? malloc(2 * bytes + 1) : NULL;
    for (uint32_t i = 0; text && i < bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", id[i]);
    return text;
}

char *build_id_at(int fd, uint64_t start)
{
    Elf64_Ehdr h;
    Elf64_Phdr p;
    uint8_t notes[MOST_NOTE_BYTES];
    char *found = NULL;
    if (pread(fd, &h, sizeof h, (off_t)start) != (ssize_t)sizeof h ||
        memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64 ||
        h.e_phentsize != sizeof p)
        return NULL;
    for (unsigned i = 0; !found && i < h.e_phnum && i < MOST_SEGMENTS; i++) {
        uint64_t at = start + h.e_phoff + i * sizeof p;
        if (pread(fd, &p, sizeof p, (off_t)at) != (ssize_t)sizeof p)
            return NULL;
        if (p.p_type != PT_NOTE)
            continue;
        size_t want = p.p_filesz < sizeof notes ? p.p_filesz : sizeof notes;
        ssize_t n = pread(fd, notes, want, (off_t)(start + p.p_offset));
        found = n > 0 ? find_in_notes(notes, (size_t)n) : NULL;
    }
    return found;
}

// Opens a regular file. Because the traced program supplies the path, rejects devices and, when run
// by root, files that other users cannot read.
static int open_regular(const char *path)
{
    char again[64];
    struct stat st;
    int at = *path == '/' ? open(path, O_PATH | O_CLOEXEC) : -1, fd = -1;
    snprintf(again, sizeof again, "/proc/self/fd/%d", at);
    if (at >= 0 && fstat(at, &st) == 0 && S_ISREG(st.st_mode) &&
        (geteuid() != 0 || (st.st_mode & S_IROTH)))
        fd = open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (at >= 0)
        close(at);
    return fd;
}

char *build_id_of(const char *path)
{
    // Caches the last file's ID, because most processes in a recording use the same allocator.
    static struct {
        char *path, *id;
        struct stat st;
    } last;
    struct stat st;
    bool is_known = stat(path, &st) == 0 && last.path && strcmp(path, last.path) == 0 &&
                    st.st_dev == last.st.st_dev && st.st_ino == last.st.st_ino &&
                    st.st_size == last.st.st_size && st.st_ctim.tv_sec == last.st.st_ctim.tv_sec &&
                    st.st_ctim.tv_nsec == last.st.st_ctim.tv_nsec;
    if (!is_known) {
        int fd = open_regular(path);
        free(last.path);
        free(last.id);
        last.path = strdup(path);
        last.id = fd >= 0 ? build_id_at(fd, 0) : NULL;
        last.st = st;
        if (fd >= 0)
            close(fd);
    }
    return last.id ? strdup(last.id) : NULL;
}
