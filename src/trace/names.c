#include "trace/names.h"

#include "base/search.h"
#include "base/varint.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

void names_release(struct names *n)
{
    free(n->entries);
    free(n->functions);
    buf_release(&n->texts);
    map_release(&n->by_hash);
    *n = (struct names){0};
}

// Stores a string unless it is already stored, and sets *offset to its offset. Returns 0 or
// -ENOMEM.
static int intern_text(struct names *n, const char *text, size_t bytes, size_t *offset)
{
    const char *nul = memchr(text, 0, bytes);
    bytes = nul ? (size_t)(nul - text) : bytes;
    bytes = bytes < NAMES_TEXT_BYTES ? bytes : NAMES_TEXT_BYTES;
    uint64_t hash = XXH3_64bits(text, bytes), found;
    // Strings with the same hash use consecutive keys.
    for (; (found = map_get(&n->by_hash, hash)); hash++) {
        const char *other = names_text(n, found - 1);
        if (strncmp(other, text, bytes) == 0 && !other[bytes])
            break;
    }
    *offset = found ? found - 1 : n->texts.size;
    if (found)
        return 0;
    if (map_put(&n->by_hash, hash, n->texts.size + 1) < 0 || buf_reserve(&n->texts, bytes + 1) < 0)
        return -ENOMEM;
    return buf_put(&n->texts, text, bytes) || buf_put_u8(&n->texts, 0) ? -ENOMEM : 0;
}

int names_begin(struct names *n, uint32_t module, uint64_t start, uint64_t bytes)
{
    const struct names_entry entry = {
        .start = start, .bytes = bytes, .module = module, .first = n->n_functions};
    return n->n_entries == UINT32_MAX
               ? -ENOMEM
               : HT_APPEND(&n->entries, &n->n_entries, &n->entries_capacity, entry);
}

int names_function(struct names *n, const char *function, size_t function_bytes, const char *file,
                   size_t file_bytes, uint32_t line)
{
    struct names_function f = {.line = line};
    if (intern_text(n, function, function_bytes, &f.function) < 0 ||
        intern_text(n, file, file_bytes, &f.file) < 0 ||
        HT_APPEND(&n->functions, &n->n_functions, &n->functions_capacity, f) < 0)
        return -ENOMEM;
    n->entries[n->n_entries - 1].n++;
    return 0;
}

int names_copy(struct names *to, const struct names *from, uint32_t shift)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < from->n_entries; i++) {
        const struct names_entry *e = &from->entries[i];
        rc = names_begin(to, e->module ? e->module + shift : 0, e->start, e->bytes);
        for (uint32_t k = 0; rc == 0 && k < e->n; k++) {
            const struct names_function *f = &from->functions[e->first + k];
            const char *function = names_text(from, f->function), *file = names_text(from, f->file);
            rc = names_function(to, function, strlen(function), file, strlen(file), f->line);
        }
    }
    return rc;
}

static int compare_places(const void *a, const void *b, void *of)
{
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const struct names *n = of;
    const struct names_entry *x = &n->entries[i], *y = &n->entries[k];
    if (x->module != y->module)
        return x->module < y->module ? -1 : 1;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (i > k) - (i < k);
}

int names_index_init(struct names_index *x, const struct names *n)
{
    *x = (struct names_index){n, malloc((n->n_entries + 1) * sizeof *x->order)};
    if (!x->order)
        return -ENOMEM;
    for (size_t i = 0; i < n->n_entries; i++)
        x->order[i] = (uint32_t)i;
    qsort_r(x->order, n->n_entries, sizeof *x->order, compare_places, (void *)(uintptr_t)n);
    return 0;
}

void names_index_release(struct names_index *x)
{
    free(x->order);
    *x = (struct names_index){0};
}

const struct names_entry *names_find(const struct names_index *x, uint32_t module, uint64_t address)
{
    const struct names_entry *e = x->names ? x->names->entries : NULL;
    size_t after = HT_SEARCH(i, e ? x->names->n_entries : 0,
                             e[x->order[i]].module > module || (e[x->order[i]].module == module &&
                                                                e[x->order[i]].start > address));
    e = after ? &e[x->order[after - 1]] : NULL;
    return e && e->n && e->module == module && address - e->start < e->bytes ? e : NULL;
}

static int put_text(struct buf *b, const char *text)
{
    size_t n = strlen(text);
    return buf_put_varint(b, n) || buf_put(b, text, n) ? -ENOMEM : 0;
}

static int put_entry(struct buf *b, const struct names *n, const struct names_entry *e,
                     uint64_t last)
{
    int rc = buf_put_varint(b, e->module) ||
             buf_put_varint(b, zigzag_put((int64_t)(e->start - last))) ||
             buf_put_varint(b, e->bytes) || buf_put_varint(b, e->n);
    for (uint32_t i = 0; rc == 0 && i < e->n; i++) {
        const struct names_function *f = &n->functions[e->first + i];
        rc = put_text(b, names_text(n, f->function)) || put_text(b, names_text(n, f->file)) ||
             buf_put_varint(b, f->line);
    }
    return rc ? -ENOMEM : 0;
}

int names_put(struct buf *b, const struct names *n, uint32_t process, size_t *entry)
{
    size_t most = b->size + NAMES_FRAME_BYTES;
    uint64_t last = 0;
    int rc = buf_put_varint(b, process);
    for (; rc == 0 && *entry < n->n_entries && b->size < most; (*entry)++) {
        rc = put_entry(b, n, &n->entries[*entry], last);
        last = n->entries[*entry].start;
    }
    return rc;
}

static int get_entry(struct varint_source *from, struct names *to, uint64_t *last)
{
    uint64_t module = varint_source_number(from);
    *last += (uint64_t)zigzag_get(varint_source_number(from));
    uint64_t bytes = varint_source_number(from), n = varint_source_number(from);
    if (from->bad || module > UINT32_MAX || n > NAMES_FUNCTIONS)
        return -EBADMSG;
    int rc = names_begin(to, (uint32_t)module, *last, bytes);
    for (; rc == 0 && n > 0; n--) {
        size_t function_bytes, file_bytes;
        const char *function = varint_source_text(from, NAMES_TEXT_BYTES, &function_bytes),
                   *file = varint_source_text(from, NAMES_TEXT_BYTES, &file_bytes);
        uint64_t line = varint_source_number(from);
        rc = from->bad || line > INT32_MAX
                 ? -EBADMSG
                 : names_function(to, function, function_bytes, file, file_bytes, (uint32_t)line);
    }
    return rc;
}

int names_get(const uint8_t *at, size_t n, struct names *to, uint32_t *process)
{
    struct varint_source from = {at, at + n, false};
    uint64_t last = 0, number = varint_source_number(&from);
    int rc = from.bad || number > UINT32_MAX ? -EBADMSG : 0;
    *process = (uint32_t)number;
    while (rc == 0 && from.at < from.end)
        rc = get_entry(&from, to, &last);
    return rc;
}
