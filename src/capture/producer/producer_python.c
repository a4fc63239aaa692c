// Call sites with Python functions. In the stack of such a site, Python functions replace the
// frames of the interpreter's evaluator.
#include "capture/producer/producer_private.h"
#include "capture/producer/producer_site.h"
#include "capture/unwind/unwind_python.h"

// A stack whose evaluator frames are being replaced.
struct splice {
    const struct producer_writer *w;
    struct unwind_stack *to;
};

// Returns the key under which the table of defined sites stores the name of the function at this
// address. The key differs from all site IDs.
static uint64_t name_id(uint64_t address)
{
    return ~address & codec_mask(CODEC_NOTE_BITS);
}

static bool is_named(uint64_t address)
{
    return producer_site_seen(producer_inherited.sites, producer_inherited.spool, name_id(address));
}

static uint64_t hash_text(const char *text, uint32_t n, uint64_t seed)
{
    uint64_t x = seed;
    for (uint32_t i = 0; i < n; i++)
        x = (x ^ (uint8_t)text[i]) * 0x100000001b3u; // FNV-1a
    x = (x ^ x >> 32) * 0x9e3779b97f4a7c15u;
    return x ^ x >> 29;
}

// Records the name of the function that the frame executes, unless the name is already in the
// trace. Returns the address of the function, or 0 if the frame is invalid. The address is a hash
// of name, file and line, because Python may reuse the address of a code object for another
// function.
static uint64_t name_function(const struct splice *s, uint64_t frame)
{
    char *text = s->w->t->unwind->text;
    uint32_t line = 0, n = sizeof CODEC_SCRIPT_TEXT - 1;
    memcpy(text, CODEC_SCRIPT_TEXT, n);
    uint32_t more = unwind_python_describe(frame, text + n, &line);
    if (!more)
        return 0;
    n += more;
    uint64_t address = CODEC_SCRIPT_START | (hash_text(text, n, line) & (CODEC_SCRIPT_BYTES - 1));
    const struct event ev = {
        .kind = HT_MODULE, .ptr = address, .size = 1, .value = line, .text = text, .text_bytes = n};
    if (!is_named(address)) {
        producer_stream_put(s->w, &ev);
        producer_site_add(producer_inherited.sites, name_id(address));
    }
    return address;
}

static void append_function(struct splice *s, uint64_t frame)
{
    struct unwind_memory *m = s->w->t->unwind;
    uint64_t key = unwind_python_key(frame), i = (key ^ key >> 32) % UNWIND_SCRIPTS;
    uint64_t address = m->scripts[i].key == key ? m->scripts[i].address : 0;
    if (!address || !is_named(address))
        address = name_function(s, frame);
    m->scripts[i].key = key;
    m->scripts[i].address = address;
    if (address)
        s->to->codes[s->to->n++] = address + 1;
}

void producer_python_splice(const struct producer_writer *w, const struct unwind_cursor *c,
                            struct unwind_stack *stack, uint32_t depth)
{
    struct splice s = {w, stack};
    struct unwind_memory *m = c->memory;
    struct unwind_python_group g;
    uint32_t native = stack->n;
    bool found = unwind_python_first(&g, c);
    memcpy(m->codes, stack->codes, native * sizeof *m->codes);
    stack->n = 0;
    for (uint32_t i = 0; i < native && stack->n < depth; i++) {
        // If the walk reached its limit, the extent of its outermost frame is unknown.
        uint64_t end = i + 1 < native ? m->sps[i + 1] : native < depth ? c->high : m->sps[i];
        uint32_t before = stack->n;
        for (; found && g.anchor >= m->sps[i] && g.anchor < end;
             found = unwind_python_outer(&g, c)) {
            for (uint64_t frame = g.frame; frame != g.end && stack->n < depth;
                 frame = unwind_python_caller(frame))
                append_function(&s, frame);
        }
        if (stack->n == before)
            stack->codes[stack->n++] = m->codes[i];
    }
    uint64_t site = stack->generation;
    for (uint32_t i = stack->n; i-- > 0;)
        stack->sites[i] = site = codec_site(site, stack->codes[i]);
}
