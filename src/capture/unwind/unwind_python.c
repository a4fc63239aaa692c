#include "capture/unwind/unwind_python.h"

#include "capture/libc/objects.h"
#include "trace/codec.h"

#include <string.h>

// Offsets in structs of the interpreter (Include/internal/pycore_frame.h, Include/cpython/code.h,
// pystate.h and unicodeobject.h of each version).
struct unwind_python_layout {
    uint16_t version;         // PY_VERSION_HEX >> 16
    bool has_cframes;         // the thread state refers to a _PyCFrame in the evaluator's frame
    bool has_entries;         // the outermost frame of each group is in the evaluator's frame
    uint8_t state_frame;      // PyThreadState: cframe or current_frame
    uint8_t cframe_frame;     // _PyCFrame: current_frame; `previous` follows
    uint8_t code, caller, at; // _PyInterpreterFrame: f_code, previous, prev_instr
    uint8_t owner;            // _PyInterpreterFrame: owner
    uint8_t first_line;       // PyCodeObject: co_firstlineno
    uint8_t instructions;     // PyCodeObject: co_code_adaptive
    uint8_t ascii, compact;   // sizes of PyASCIIObject and PyCompactUnicodeObject
};

static const struct unwind_python_layout layouts[] = {
    {0x030b, true, false, 56, 8, 32, 48, 56, 69, 72, 184, 48, 72},
    {0x030c, true, true, 56, 0, 0, 8, 56, 70, 68, 192, 40, 56},
    {0x030d, false, true, 72, 0, 0, 8, 56, 70, 68, 200, 40, 56},
};

// Offsets that all versions have in common.
enum {
    OBJECT_TYPE = 8,
    OBJECT_SIZE = 16, // also the length of a str
    TYPE_BASIC_SIZE = 32,
    CODE_FILE = 112,
    CODE_NAME = 128, // co_qualname
    CODE_LINES = 136,
    BYTES_DATA = 32,
    STR_STATE = 32,
    STR_KIND_AT = 2, // bit offset in the state
    STR_COMPACT = 1 << 5,
    STR_ASCII = 1 << 6,
    RUNTIME_FREE_THREADED = 16, // since 3.13
    OWNED_BY_C_STACK = 3,
    MAX_FRAMES = 1 << 20,
    MAX_BYTES = 1 << 24,
};

const struct unwind_python_layout *_Atomic unwind_python;

static struct {
    void *(*state)(void);
    uint64_t code, str, bytes; // types
} interpreter;

static uint32_t read_u32(uint64_t at)
{
    return *(const uint32_t *)at;
}

static bool is_type(uint64_t object, uint64_t type)
{
    return object && object % 8 == 0 && unwind_read(object + OBJECT_TYPE) == type;
}

// Returns the layout of the interpreter in the object, or NULL. With Py_TRACE_REFS, objects have a
// different layout.
static const struct unwind_python_layout *find_layout(const struct object *o)
{
    const uint32_t *version = object_find_variable(o, "Py_Version");
    uint64_t type = (uintptr_t)object_find_variable(o, "PyType_Type"),
             code = (uintptr_t)object_find_variable(o, "PyCode_Type"),
             runtime = (uintptr_t)object_find_variable(o, "_PyRuntime");
    for (size_t i = 0; version && i < sizeof layouts / sizeof *layouts; i++) {
        const struct unwind_python_layout *l = &layouts[i];
        if (*version >> 16 == l->version && runtime && is_type(code, type) &&
            unwind_read(code + TYPE_BASIC_SIZE) == l->instructions &&
            (l->has_cframes || !unwind_read(runtime + RUNTIME_FREE_THREADED)))
            return l;
    }
    return NULL;
}

static bool find_in_object(const struct object *o, void *context)
{
    (void)context;
    const struct unwind_python_layout *l = find_layout(o);
    if (!l)
        return false;
    // A public function that reads a thread-specific value.
    void *state = object_find_function(o, "PyGILState_GetThisThreadState");
    memcpy(&interpreter.state, &state, sizeof state);
    interpreter.code = (uintptr_t)object_find_variable(o, "PyCode_Type");
    interpreter.str = (uintptr_t)object_find_variable(o, "PyUnicode_Type");
    interpreter.bytes = (uintptr_t)object_find_variable(o, "PyBytes_Type");
    if (interpreter.state && interpreter.str && interpreter.bytes)
        atomic_store_explicit(&unwind_python, l, memory_order_release);
    return true;
}

void unwind_python_find(void)
{
    if (!unwind_python_is_loaded())
        objects_visit(find_in_object, NULL);
}

// Returns true if the address is in a live frame of the native stack.
static bool is_on_stack(uint64_t at, const struct unwind_cursor *c)
{
    return at % 8 == 0 && at >= c->low && at < c->high - 3 * WORD;
}

static bool is_entry(const struct unwind_python_layout *l, uint64_t frame)
{
    return l->has_entries && *(const uint8_t *)(frame + l->owner) == OWNED_BY_C_STACK;
}

// Returns the innermost frame, or 0. Sets *cframe to the _PyCFrame if this version has one. If the
// thread executes no Python function, or executes one on another stack, the _PyCFrame is not on
// this stack.
static uint64_t first_frame(const struct unwind_python_layout *l, const struct unwind_cursor *c,
                            uint64_t *cframe)
{
    uint64_t state = (uintptr_t)interpreter.state();
    uint64_t at = state ? unwind_read(state + l->state_frame) : 0;
    *cframe = at;
    if (!l->has_cframes)
        return at;
    return is_on_stack(at, c) ? unwind_read(at + l->cframe_frame) : 0;
}

// Combines the address of the instruction with attributes of the code object.
static inline uint64_t key_of(const struct unwind_python_layout *l, uint64_t frame)
{
    uint64_t code = unwind_read(frame + l->code);
    uint64_t attributes = unwind_read(code + CODE_FILE) * 31 + unwind_read(code + CODE_NAME);
    return unwind_read(frame + l->at) +
           (attributes * 31 + unwind_read(code + CODE_LINES)) * 0x9e3779b97f4a7c15u;
}

uint64_t unwind_python_key(uint64_t frame)
{
    const struct unwind_python_layout *l =
        atomic_load_explicit(&unwind_python, memory_order_acquire);
    return l ? key_of(l, frame) : 0;
}

uint64_t unwind_python_site(uint64_t site, const struct unwind_cursor *c)
{
    const struct unwind_python_layout *l =
        atomic_load_explicit(&unwind_python, memory_order_acquire);
    uint64_t hash = 0, cframe, frame = l ? first_frame(l, c, &cframe) : 0;
    if (!frame)
        return site;
    for (unsigned n = 0; frame && n < UNWIND_DEPTH; n++, frame = unwind_read(frame + l->caller)) {
        if (!is_entry(l, frame))
            hash = hash * CODEC_SITE_FACTOR + key_of(l, frame);
    }
    return (site * CODEC_SITE_FACTOR + (hash ^ hash >> 32)) & codec_mask(CODEC_NOTE_BITS);
}

// Sets the end and the anchor of the group. Returns false if the anchor is not on the stack.
static bool complete_group(struct unwind_python_group *g, const struct unwind_python_layout *l,
                           const struct unwind_cursor *c)
{
    g->end = g->frame;
    if (l->has_entries) {
        for (unsigned n = 0; g->end && !is_entry(l, g->end) && n < MAX_FRAMES; n++)
            g->end = unwind_read(g->end + l->caller);
        g->anchor = g->end;
    } else {
        uint64_t outer = unwind_read(g->cframe + l->cframe_frame + WORD);
        g->end = outer ? unwind_read(outer + l->cframe_frame) : 0;
        g->anchor = g->cframe;
    }
    return is_on_stack(g->anchor, c);
}

bool unwind_python_first(struct unwind_python_group *g, const struct unwind_cursor *c)
{
    const struct unwind_python_layout *l =
        atomic_load_explicit(&unwind_python, memory_order_acquire);
    return l && (g->frame = first_frame(l, c, &g->cframe)) && complete_group(g, l, c);
}

bool unwind_python_outer(struct unwind_python_group *g, const struct unwind_cursor *c)
{
    const struct unwind_python_layout *l =
        atomic_load_explicit(&unwind_python, memory_order_acquire);
    uint64_t inner = g->anchor;
    if (!l)
        return false;
    if (l->has_entries) {
        g->frame = unwind_read(g->end + l->caller);
    } else {
        g->cframe = unwind_read(g->cframe + l->cframe_frame + WORD);
        g->frame = is_on_stack(g->cframe, c) ? unwind_read(g->cframe + l->cframe_frame) : 0;
    }
    return g->frame && complete_group(g, l, c) && g->anchor > inner;
}

uint64_t unwind_python_caller(uint64_t frame)
{
    const struct unwind_python_layout *l =
        atomic_load_explicit(&unwind_python, memory_order_acquire);
    return l ? unwind_read(frame + l->caller) : 0;
}

// If there is space for the longest character, appends a character in UTF-8. Returns the new
// length.
static uint32_t append_character(char *text, uint32_t n, uint32_t room, uint32_t c)
{
    unsigned more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    if (room - n < 4)
        return n;
    text[n++] = (char)(more ? (0xff00 >> (more + 1) & 0xff) | c >> 6 * more : c);
    while (more-- > 0)
        text[n++] = (char)(0x80 | (c >> 6 * more & 0x3f));
    return n;
}

// Stores a str, truncated to `room` bytes. Returns the number of bytes.
static uint32_t copy_str(const struct unwind_python_layout *l, uint64_t str, char *text,
                         uint32_t room)
{
    uint32_t n = 0, state = is_type(str, interpreter.str) ? read_u32(str + STR_STATE) : 0,
             kind = state >> STR_KIND_AT & 7;
    uint64_t length = state & STR_COMPACT ? unwind_read(str + OBJECT_SIZE) : 0,
             data = str + (state & STR_ASCII ? l->ascii : l->compact);
    for (uint64_t i = 0; i < length && i < room; i++) {
        uint32_t c = kind == 1   ? ((const uint8_t *)data)[i]
                     : kind == 2 ? ((const uint16_t *)data)[i]
                                 : ((const uint32_t *)data)[i];
        n = append_character(text, n, room, c);
    }
    return n;
}

// Location table of CPython (Objects/locations.md): entries of code, length, and numbers in groups
// of 6 bits. The first byte of an entry has its top bit set.
struct line_table {
    const uint8_t *at, *end;
};

static int32_t read_number(struct line_table *t)
{
    uint32_t value = 0;
    for (unsigned shift = 0; t->at < t->end && shift < 32; shift += 6) {
        uint8_t byte = *t->at++;
        value |= (byte & 0x3fu) << shift;
        if (!(byte & 0x40))
            break;
    }
    return value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
}

// Returns the line of the instruction, or 0 if the instruction has no line.
static uint32_t find_line(const struct unwind_python_layout *l, uint64_t code, uint64_t at)
{
    enum { NO_LOCATION = 15, LONG_FORM = 14, NO_COLUMNS = 13, ONE_LINE = 10 };
    uint64_t table = unwind_read(code + CODE_LINES), start = code + l->instructions;
    int32_t line = (int32_t)read_u32(code + l->first_line);
    uint64_t bytes = is_type(table, interpreter.bytes) ? unwind_read(table + OBJECT_SIZE) : 0;
    struct line_table t = {.at = (const uint8_t *)(table + BYTES_DATA)};
    t.end = t.at + (bytes < MAX_BYTES ? bytes : 0);
    for (uint64_t end = start; at >= start && t.at < t.end;) {
        unsigned head = *t.at++, form = head >> 3 & 15;
        line += form == LONG_FORM || form == NO_COLUMNS ? read_number(&t)
                : form >= ONE_LINE && form < NO_COLUMNS ? (int32_t)(form - ONE_LINE)
                                                        : 0;
        end += ((head & 7) + 1) * 2;
        if (at < end)
            return form == NO_LOCATION || line < 0 ? 0 : (uint32_t)line;
        while (t.at < t.end && !(*t.at & 0x80))
            t.at++;
    }
    return line > 0 ? (uint32_t)line : 0; // 0 if the frame has not begun
}

uint32_t unwind_python_describe(uint64_t frame, char text[UNWIND_PYTHON_TEXT_BYTES], uint32_t *line)
{
    const struct unwind_python_layout *l =
        atomic_load_explicit(&unwind_python, memory_order_acquire);
    uint64_t code = l ? unwind_read(frame + l->code) : 0;
    if (!is_type(code, interpreter.code))
        return 0;
    uint32_t n = copy_str(l, unwind_read(code + CODE_NAME), text, UNWIND_PYTHON_TEXT_BYTES / 3);
    text[n++] = 0;
    *line = find_line(l, code, unwind_read(frame + l->at));
    return n + copy_str(l, unwind_read(code + CODE_FILE), text + n, UNWIND_PYTHON_TEXT_BYTES - n);
}
