// Notes of ELF objects.
#pragma once

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Returns the GNU build ID in the notes of an ELF object and sets *bytes to its size, or returns
// NULL. A note consists of a header, a name and a description, each padded to 4 bytes.
static inline const uint8_t *elf_note_build_id(const uint8_t *notes, size_t n, uint32_t *bytes)
{
    Elf64_Nhdr h;
    for (size_t at = 0; at + sizeof h <= n;) {
        memcpy(&h, notes + at, sizeof h);
        size_t name = at + sizeof h, text = name + ((h.n_namesz + (size_t)3) & ~(size_t)3);
        if (text > n || h.n_descsz > n - text)
            return NULL;
        *bytes = h.n_descsz;
        if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 && memcmp(notes + name, "GNU", 4) == 0)
            return notes + text;
        at = text + ((h.n_descsz + (size_t)3) & ~(size_t)3);
    }
    return NULL;
}
