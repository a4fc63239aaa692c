// heaptrack data files, formats 0 to 3, and files written by `heaptrack --raw`. The layout is
// described in docs/reference/foreign-formats.md, "heaptrack".
#include "formats/text.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    LAST_VERSION = 3,
    NO_BLOCK = UINT32_MAX,
    // Memory needed for a frame's names, excluding the strings.
    FRAME_BYTES = 64,
    FUNCTION_BYTES = 80,
};

// A data file does not contain the load addresses of modules. Module N is assumed to be loaded at N
// * MODULE_BYTES.
#define MODULE_BYTES (1ull << 32)

struct heaptrack_string {
    size_t at; // offset in `texts`
    uint32_t n;
    uint32_t module; // number of the module with this path, or 0 if no number was assigned yet
};

// Requests of the same size at the same call site, with a list of their live blocks.
struct heaptrack_info {
    uint64_t size;
    uint32_t site, newest;
};

struct heaptrack_import {
    uint64_t version, ns;
    bool is_raw; // frames and blocks are addresses; in format 0, blocks are always addresses
    struct buf texts;
    struct heaptrack_string *strings; // index is number - 1
    uint64_t *frames;                 // addresses; index is number - 1
    struct heaptrack_info *infos;
    uint32_t *older; // by block: the next older block of the same info
    size_t n_strings, n_frames, n_infos, n_blocks, n_sites;
    size_t strings_capacity, frames_capacity, infos_capacity, blocks_capacity;
    uint32_t unused; // list of unused blocks
    uint32_t n_modules;
};

// Parses a space followed by a number of at most `most`.
static bool parse_index(const char **at, uint64_t most, uint64_t *v)
{
    const char *p = *at;
    if (!text_match(&p, ' ') || !text_parse_hex(&p, v) || *v > most)
        return false;
    *at = p;
    return true;
}

static bool parse_field(const char **at, uint64_t *v)
{
    return parse_index(at, UINT64_MAX, v);
}

// Parses a space followed by a string. In format 3, the string is preceded by its length. Returns
// NULL, or a description of the expected text.
static const char *parse_text(const struct heaptrack_import *h, const char **at, const char *end,
                              const char **text, size_t *n)
{
    uint64_t length;
    if (h->version >= 3 && !parse_field(at, &length))
        return "the length of a text";
    if (!text_match(at, ' '))
        return "a space";
    if (h->version < 3)
        length = (uint64_t)(end - *at);
    if (length > (uint64_t)(end - *at))
        return "a text of the given length";
    *text = *at;
    *n = (size_t)length;
    *at += length;
    return NULL;
}

static int put_event(struct import *im, struct event ev)
{
    const struct heaptrack_import *h = im->state;
    ev.stamp = h->ns;
    return import_put(im, 1, 1, &ev);
}

static int put_module(struct import *im, const char *path, size_t n, uint64_t start, uint64_t bytes,
                      uint64_t offset)
{
    struct heaptrack_import *h = im->state;
    char text[CODEC_MAX_TEXT_BYTES];
    n = n < sizeof text ? n : sizeof text - 1;
    text[0] = ' '; // empty build ID
    memcpy(text + 1, path, n);
    h->n_modules++;
    return put_event(im, (struct event){.kind = HT_MODULE,
                                        .ptr = start,
                                        .size = bytes,
                                        .value = offset,
                                        .text = text,
                                        .text_bytes = (uint32_t)n + 1});
}

static int read_version(struct import *im, struct text_line *line)
{
    struct heaptrack_import *h = im->state;
    uint64_t program;
    if (!parse_field(&line->at, &program))
        return text_bad(im, line, "the version of heaptrack");
    h->version = program == 0x10200;
    if (line->at < line->end && !parse_index(&line->at, LAST_VERSION, &h->version))
        return text_bad(im, line, "the version of the format, at most 3");
    return 0;
}

// Reads the command line. heaptrack joins the arguments with spaces.
static int read_command(struct import *im, struct text_line *line)
{
    if (!text_match(&line->at, ' ') || line->at == line->end)
        return text_bad(im, line, "a command line");
    size_t n = (size_t)(line->end - line->at);
    if (im->begun || im->argv)
        return 0;
    im->argv = malloc(n + 1);
    if (!im->argv)
        return import_no_memory(im);
    im->argv_bytes = (uint32_t)n + 1;
    for (size_t i = 0; i < n; i++)
        im->argv[i] = line->at[i] == ' ' ? 0 : line->at[i];
    im->argv[n] = 0;
    return 0;
}

static int keep_exe(struct import *im, const char *path, size_t n)
{
    if (im->exe || im->begun || n == 0 || path[0] != '/')
        return 0;
    im->exe = strndup(path, n);
    return im->exe ? 0 : import_no_memory(im);
}

static int read_string(struct import *im, struct text_line *line)
{
    struct heaptrack_import *h = im->state;
    const char *text = NULL, *expected;
    size_t n = 0;
    expected = parse_text(h, &line->at, line->end, &text, &n);
    if (expected)
        return text_bad(im, line, expected);
    int rc = import_keep(im, sizeof *h->strings + n);
    if (rc < 0)
        return rc;
    if (HT_APPEND(&h->strings, &h->n_strings, &h->strings_capacity,
                  (struct heaptrack_string){.at = h->texts.size, .n = (uint32_t)n}) < 0 ||
        buf_put(&h->texts, text, n) < 0)
        return import_no_memory(im);
    // The first string is the program's path.
    return h->n_strings == 1 ? keep_exe(im, text, n) : 0;
}

static int read_exe(struct import *im, struct text_line *line)
{
    const char *text = NULL, *expected;
    size_t n = 0;
    expected = parse_text(im->state, &line->at, line->end, &text, &n);
    return expected ? text_bad(im, line, expected) : keep_exe(im, text, n);
}

// Reads the mapping of a module: its path, its load address, and the address and size of each
// segment. The path "-" removes all modules. File offsets are missing, but a code segment's offset
// usually equals its address.
static int read_mapping(struct import *im, struct text_line *line)
{
    struct heaptrack_import *h = im->state;
    const char *path = NULL, *expected;
    uint64_t base, start, bytes;
    size_t n = 0;
    h->is_raw = true;
    expected = parse_text(h, &line->at, line->end, &path, &n);
    if (expected)
        return text_bad(im, line, expected);
    if (n == 1 && *path == '-' && line->at == line->end)
        return 0;
    if (!parse_field(&line->at, &base))
        return text_bad(im, line, "the address of a module");
    if (n == 1 && *path == 'x' && im->exe) {
        path = im->exe;
        n = strlen(path);
    }
    while (line->at < line->end) {
        if (!parse_field(&line->at, &start) || !parse_field(&line->at, &bytes))
            return text_bad(im, line, "the address and size of a segment");
        int rc = put_module(im, path, n, base + start, bytes, start);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static const struct heaptrack_string *get_string(const struct heaptrack_import *h, uint64_t number)
{
    static const struct heaptrack_string none;
    return number ? &h->strings[number - 1] : &none;
}

// Names a function and its source line. An unknown function is named by its address.
static int name_function(struct import *im, uint64_t address, const uint64_t triple[3])
{
    const struct heaptrack_import *h = im->state;
    const struct heaptrack_string *function = get_string(h, triple[0]),
                                  *file = get_string(h, triple[1]);
    const char *texts = (const char *)h->texts.data;
    char text[20];
    int n = snprintf(text, sizeof text, "0x%llx", (unsigned long long)address);
    return names_function(&im->names, triple[0] ? texts + function->at : text,
                          triple[0] ? function->n : (size_t)n, texts + file->at, file->n,
                          triple[2] < UINT32_MAX ? (uint32_t)triple[2] : 0);
}

// Reads a frame: its address and module, then the function, file and line of the code at that
// address, and of each inlined function.
static int read_frame(struct import *im, struct text_line *line)
{
    struct heaptrack_import *h = im->state;
    uint64_t address, path, triple[3];
    int rc = 0;
    if (!parse_field(&line->at, &address) || !parse_index(&line->at, h->n_strings, &path))
        return text_bad(im, line, "an address and the number of a module");
    struct heaptrack_string *of = path ? &h->strings[path - 1] : NULL;
    if (of && !of->module && h->n_modules < UINT16_MAX - 1) {
        rc = put_module(im, (const char *)h->texts.data + of->at, of->n,
                        (h->n_modules + 1) * MODULE_BYTES, MODULE_BYTES, 0);
        of->module = h->n_modules;
    }
    uint32_t module = of ? of->module : 0;
    rc = rc < 0 ? rc : import_keep(im, FRAME_BYTES);
    uint64_t made = module ? module * MODULE_BYTES + address % MODULE_BYTES : address;
    if (rc == 0 && names_begin(&im->names, module, made - 1, 1) < 0)
        return import_no_memory(im);
    for (unsigned n = 0; n == 0 || (rc == 0 && line->at < line->end); n++) {
        // If the function or the file is unknown, the remaining numbers are missing.
        memset(triple, 0, sizeof triple);
        if (line->at < line->end && !parse_index(&line->at, h->n_strings, &triple[0]))
            return text_bad(im, line, "the number of a function");
        if (line->at < line->end && (!parse_index(&line->at, h->n_strings, &triple[1]) ||
                                     !parse_field(&line->at, &triple[2])))
            return text_bad(im, line, "the number of a file, and a line");
        // Keep only the innermost functions.
        if (n >= NAMES_FUNCTIONS)
            continue;
        if (name_function(im, address, triple) < 0)
            return import_no_memory(im);
        rc = rc < 0 ? rc : import_keep(im, FUNCTION_BYTES);
    }
    if (rc == 0 && HT_APPEND(&h->frames, &h->n_frames, &h->frames_capacity, made) < 0)
        return import_no_memory(im);
    return rc;
}

// Reads a call site: its frame, then the number of its caller, or 0.
static int read_site(struct import *im, struct text_line *line)
{
    struct heaptrack_import *h = im->state;
    uint64_t frame, outer;
    if (!parse_field(&line->at, &frame) || !parse_index(&line->at, h->n_sites, &outer))
        return text_bad(im, line, "a frame and the number of a call site");
    if (!h->is_raw && (frame == 0 || frame > h->n_frames))
        return text_bad(im, line, "the number of a frame");
    h->n_sites++;
    return put_event(im, (struct event){.kind = HT_FRAME,
                                        .ptr = h->is_raw ? frame : h->frames[frame - 1],
                                        .size = outer,
                                        .value = h->n_sites});
}

static int read_info(struct import *im, struct text_line *line)
{
    struct heaptrack_import *h = im->state;
    uint64_t size, site;
    if (!parse_field(&line->at, &size) || !parse_index(&line->at, h->n_sites, &site))
        return text_bad(im, line, "a size and the number of a call site");
    const struct heaptrack_info info = {size, (uint32_t)site, NO_BLOCK};
    int rc = import_keep(im, sizeof info);
    if (rc == 0 && (h->n_infos == UINT32_MAX - 1 ||
                    HT_APPEND(&h->infos, &h->n_infos, &h->infos_capacity, info) < 0))
        return import_no_memory(im);
    return rc;
}

static uint64_t block_address(uint32_t block)
{
    return text_slot_address(block + 1ull);
}

static int put_alloc(struct import *im, uint64_t size, uint64_t site, uint64_t result)
{
    struct event ev = {.kind = HT_MALLOC, .size = size, .result = result};
    ev.notes[HT_NOTE_SITE] = site;
    return put_event(im, ev);
}

static int allocate_block(struct import *im, struct heaptrack_info *info)
{
    struct heaptrack_import *h = im->state;
    uint32_t block = h->unused;
    if (block == NO_BLOCK) {
        if (h->n_blocks == NO_BLOCK || HT_GROW(&h->older, &h->blocks_capacity, h->n_blocks + 1) < 0)
            return import_no_memory(im);
        block = (uint32_t)h->n_blocks++;
    } else {
        h->unused = h->older[block];
    }
    h->older[block] = info->newest;
    info->newest = block;
    return put_alloc(im, info->size, info->site, block_address(block));
}

// Frees the newest block with this size and call site. The file does not identify the block that
// was freed.
static int free_block(struct import *im, struct heaptrack_info *info)
{
    struct heaptrack_import *h = im->state;
    uint32_t block = info->newest;
    if (block == NO_BLOCK) // the block was allocated before heaptrack attached
        return put_event(im, (struct event){.kind = HT_FREE, .ptr = text_slot_address(1ull << 40)});
    info->newest = h->older[block];
    h->older[block] = h->unused;
    h->unused = block;
    return put_event(im, (struct event){.kind = HT_FREE, .ptr = block_address(block)});
}

static bool has_addresses(const struct heaptrack_import *h)
{
    return h->is_raw || h->version == 0;
}

static int read_alloc(struct import *im, struct text_line *line)
{
    struct heaptrack_import *h = im->state;
    uint64_t first, site, block;
    if (has_addresses(h)) {
        if (!parse_field(&line->at, &first) || !parse_index(&line->at, h->n_sites, &site) ||
            !parse_field(&line->at, &block))
            return text_bad(im, line, "a size, the number of a call site, and an address");
        return put_alloc(im, first, site, block);
    }
    if (!parse_field(&line->at, &first) || first >= h->n_infos)
        return text_bad(im, line, "the number of an allocation");
    return allocate_block(im, &h->infos[first]);
}

static int read_free(struct import *im, struct text_line *line)
{
    struct heaptrack_import *h = im->state;
    uint64_t of;
    if (!parse_field(&line->at, &of))
        return text_bad(im, line, "an allocation or an address");
    if (has_addresses(h))
        return put_event(im, (struct event){.kind = HT_FREE, .ptr = of});
    return of < h->n_infos ? free_block(im, &h->infos[of])
                           : text_bad(im, line, "the number of an allocation");
}

static int read_time(struct import *im, struct text_line *line)
{
    struct heaptrack_import *h = im->state;
    uint64_t ms;
    if (!parse_field(&line->at, &ms) || ms > UINT64_MAX / 4000000)
        return text_bad(im, line, "a time in ms");
    h->ns = ms * 1000000 > h->ns ? ms * 1000000 : h->ns;
    return 0;
}

// Line readers, indexed by the line's first character.
static int (*const readers[128])(struct import *im, struct text_line *line) = {
    ['+'] = read_alloc, ['-'] = read_free,    ['a'] = read_info,    ['t'] = read_site,
    ['i'] = read_frame, ['s'] = read_string,  ['c'] = read_time,    ['v'] = read_version,
    ['x'] = read_exe,   ['X'] = read_command, ['m'] = read_mapping,
};

static int read_line(struct import *im, struct text_line *line)
{
    unsigned char first = (unsigned char)*line->at;
    // Ignore comments, and lines about attaching, the machine, resident memory and suppressions.
    if (first && strchr("#\nAIRS", first))
        return 0;
    if (first >= 128 || !readers[first])
        return text_bad(im, line, "a line of heaptrack");
    line->at++;
    return readers[first](im, line);
}

static int begin_heaptrack(struct import *im)
{
    struct heaptrack_import *h = im->state;
    h->unused = NO_BLOCK;
    im->has_times = im->from_start = true;
    return 0;
}

static void release_heaptrack(void *state)
{
    struct heaptrack_import *h = state;
    buf_release(&h->texts);
    free(h->strings);
    free(h->frames);
    free(h->infos);
    free(h->older);
}

const struct format format_heaptrack = {
    .name = "heaptrack",
    .import =
        {
            .line = read_line,
            .state_bytes = sizeof(struct heaptrack_import),
            .begin = begin_heaptrack,
            .release = release_heaptrack,
            .window = 1,
        },
};
