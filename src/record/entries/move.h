// Moves the first instructions of one function to a trampoline. Each machine has a file
// (move_x86_64.c, move_aarch64.c).
#pragma once

#include "record/entries/find.h"

enum {
    MOVE_CODE_BYTES = 64, // size of a trampoline
    MOVE_STUB_BYTES = 16,
    MOVE_JUMP_BYTES = ENTRIES_KEEP_BYTES + ENTRIES_JUMP_BYTES,
    MOVE_MAX_FIXUPS = 8,
};

struct move {
    struct entries_entry *entry; // `at`, `bytes`, `keep`, `was` and `moved` are filled in
    uint64_t trampoline;         // planned virtual address
    bool keeps_returns;          // refuse calls, because their return addresses cannot be replaced
    uint8_t code[MOVE_CODE_BYTES];
    unsigned code_bytes;
    uint8_t fixups[MOVE_MAX_FIXUPS];   // offsets of displacements in `code`
    uint64_t targets[MOVE_MAX_FIXUPS]; // targets of these displacements
    unsigned n_fixups;
};

// Moves the instructions that a jump replaces. The caller sets the members entry, trampoline and
// keeps_returns of *m. Returns ENTRIES_REASONS on success, or the reason why the instructions
// cannot be moved.
enum entries_reason move_function(struct move *m, const struct entries_image *i,
                                  const struct find_function *f);

// If the function at `at` consists of a direct jump, returns the target of the jump, else 0. `code`
// holds the first bytes of the function, and zeros after its end.
uint64_t move_jump_target(const uint8_t code[MOVE_JUMP_BYTES], uint64_t at);

// Returns true if the instruction that ends at the address returns from a function.
bool move_is_return(const struct entries_image *i, uint64_t end);

// Returns the end of the addresses that jumps and moved instructions may refer to.
uint64_t move_reached_end(const struct entries_image *i);

// Writes the stub of an entry: a jump through the slot. `was` is known.
void move_write_stub(uint8_t to[MOVE_STUB_BYTES], const struct entries_entry *e);

// Sets reasons[k] to ENTRIES_REASON_JUMPED_TO if a jump or call anywhere in the code of the object
// leads into the replaced bytes of entries[k]. The entries are sorted by address, and bytes[k] is
// the size of the function. Returns 0, or -ENOMEM.
int move_find_jumps(const struct entries_image *i, const struct entries_entry *entries, size_t n,
                    const uint64_t *bytes, enum entries_reason *reasons);
