// Wrappers for the C++ operators, except the common cases of the plain operators (wrap_fast.c).
// Written in C, because linking a C++ runtime into every program would be unacceptable.
//
// The operators of libstdc++ and libc++ only wrap malloc and free, so they are bypassed: malloc and
// free are called directly, and the new_handler loop is implemented here. Operators defined by an
// allocator (jemalloc, tcmalloc, mimalloc) or by the program are called. Their own calls to malloc
// and free are not events.
//
// Exceptions pass through the frames of this file. While an exception passes, a personality routine
// records the failed call. The routine does not depend on the unwinder.
#include "capture/wrap/next.h"
#include "capture/wrap/redirect.h"
#include "capture/wrap/wrap.h"

#include <stdatomic.h>
#include <string.h>
#include <unwind.h>

_Atomic enum wrap_operators wrap_operators;

// Real operators by kind, with any signature. Calls always pass three arguments. In the x86-64 and
// aarch64 ABIs, surplus arguments are in registers that the operator ignores.
static void *real[HT_KIND_LIMIT];

static void (*(*get_new_handler)(void))(void);
static void (*throw_bad_alloc)(void);

static bool is_operator(const char *symbol)
{
    return strncmp(symbol, "_Zn", 3) == 0 || strncmp(symbol, "_Zd", 3) == 0;
}

static bool is_standard_library(const char *path)
{
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    return strncmp(name, "libstdc++.so", 12) == 0 || strncmp(name, "libc++", 6) == 0;
}

void wrap_cxx_resolve(void)
{
    struct next_object object;
    enum wrap_operators kind_of = WRAP_OPERATORS_STANDARD;
    bool same_object = false;
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        if (event_infos[kind].name && is_operator(event_infos[kind].symbol))
            next_find(event_infos[kind].symbol, &real[kind]);
    }
    next_find("_ZSt15get_new_handlerv", (void **)&get_new_handler);
    next_find("_ZSt17__throw_bad_allocv", (void **)&throw_bad_alloc);
    if (real[HT_NEW] && next_object_of(real[HT_NEW], &object)) {
        producer_set_object(PRODUCER_OBJECT_OPERATOR, object.start, object.end);
        // The standard operators call the same malloc as all other objects.
        struct next_object hidden_by;
        if (!is_standard_library(object.path) || next_is_bypassed(&hidden_by))
            kind_of = WRAP_OPERATORS_OWN;
        // An operator that the program does not replace may call an operator that the program
        // replaces.
        if (real[HT_NEW_NOTHROW] && next_object_of(real[HT_NEW_NOTHROW], &object) &&
            is_standard_library(object.path))
            producer_set_object(PRODUCER_OBJECT_RUNTIME, object.start, object.end);
        next_resolve();
        same_object = producer_is_allocator(real[HT_NEW]);
    }
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++)
        real[kind] = redirect_real(real[kind]);
    next_operators_are_malloc = kind_of != WRAP_OPERATORS_OWN || same_object;
    atomic_store_explicit(&wrap_operators, kind_of, memory_order_release);
}

static enum wrap_operators operators_known(void)
{
    enum wrap_operators now = atomic_load_explicit(&wrap_operators, memory_order_acquire);
    if (__builtin_expect(now == WRAP_OPERATORS_UNKNOWN, 0)) {
        wrap_cxx_resolve();
        now = atomic_load_explicit(&wrap_operators, memory_order_acquire);
    }
    return now;
}

// A call to a throwing operator new.
struct call {
    enum event_kind kind;
    size_t size, align;
    const void *nothrow; // std::nothrow of the caller, or NULL
    const void *caller;
    struct call *outer; // the enclosing call, because a new_handler may call operator new
    uint32_t was;       // previous producer_tls.busy
    bool recorded;
};

static void record_new(const struct call *c, const void *p)
{
    const struct event ev = {.kind = c->kind,
                             .size = c->size,
                             .align = c->align,
                             .result = (uintptr_t)p,
                             .error = p ? 0 : wrap_error(NULL, 1)};
    operators_known(); // sets next_operators_are_malloc for the producer
    producer_record(&ev, c->caller);
}

// Called when an exception or a thread cancellation passes through `guarded`'s frame.
__attribute__((visibility("hidden"), used)) _Unwind_Reason_Code
wrap_cxx_personality(int version, _Unwind_Action actions, _Unwind_Exception_Class of,
                     struct _Unwind_Exception *thrown, struct _Unwind_Context *context);
_Unwind_Reason_Code wrap_cxx_personality(int version, _Unwind_Action actions,
                                         _Unwind_Exception_Class of,
                                         struct _Unwind_Exception *thrown,
                                         struct _Unwind_Context *context)
{
    (void)version, (void)of, (void)thrown, (void)context;
    struct call *c = producer_tls.failing;
    if (c && !c->recorded) {
        c->recorded = true;
        record_new(c, NULL);
    }
    if (c && (actions & _UA_CLEANUP_PHASE)) {
        producer_tls.failing = c->outer;
        producer_leave(c->was);
    }
    return _URC_CONTINUE_UNWIND;
}

// Runs `body`, which may throw, in a frame with the personality routine.
static __attribute__((noinline)) void *guarded(struct call *c, void *(*body)(struct call *c))
{
    __asm__ volatile(".cfi_personality 0x1b, wrap_cxx_personality"); // 0x1b: PC-relative, 4 bytes
    c->was = producer_tls.busy;
    c->outer = producer_tls.failing;
    producer_tls.failing = c;
    void *p = body(c);
    producer_tls.failing = c->outer;
    producer_leave(c->was);
    return p;
}

struct guarded_body {
    struct call call;
    uintptr_t (*body)(const void *context);
    const void *context;
};

static void *call_body(struct call *c)
{
    const struct guarded_body *g = (const struct guarded_body *)(const void *)c;
    return (void *)g->body(g->context);
}

uintptr_t wrap_cxx_guard(uintptr_t (*body)(const void *context), const void *context)
{
    struct guarded_body g = {.call.recorded = true, .body = body, .context = context};
    return (uintptr_t)guarded(&g.call, call_body);
}

static void *call_real(struct call *c)
{
    void *(*operator)(size_t, uintptr_t, const void *) =
        (void *(*)(size_t, uintptr_t, const void *))real[c->kind];
    if (!operator)
        return NULL;
    uint64_t begin = producer_call_begin();
    producer_enter(PRODUCER_IN_OPERATOR);
    void *p = c->align ? operator(c->size, c->align, c->nothrow) :
                       operator(c->size, (uintptr_t)c->nothrow, NULL);
    producer_call_end(begin);
    return p;
}

static bool is_power_of_two(size_t n)
{
    return n && (n & (n - 1)) == 0;
}

// Allocates like the operators of the standard libraries. `align` is 0 for the forms without an
// alignment.
static void *standard_alloc(size_t size, size_t align)
{
    if (!align)
        return next.malloc(size ? size : 1);
    size_t rounded = ((size ? size : 1) + align - 1) & ~(align - 1);
    if (!is_power_of_two(align) || rounded < size)
        return NULL;
    return next.aligned_alloc(align, rounded);
}

// [new.delete.single]: call the handler while one is installed. The handler may free memory or
// throw.
static void *run_handlers(struct call *c)
{
    for (;;) {
        void (*handler)(void) = get_new_handler ? get_new_handler() : NULL;
        if (!handler || (c->align && !is_power_of_two(c->align))) {
            if (throw_bad_alloc)
                throw_bad_alloc();
            return call_real(c);
        }
        handler();
        void *p = standard_alloc(c->size, c->align);
        if (p)
            return p;
    }
}

static WRAP_COLD void *standard_new_slow(struct call *c, void *p)
{
    if (!p && !c->nothrow)
        p = guarded(c, run_handlers);
    // The real operator catches the handler's exceptions.
    else if (!p && get_new_handler && get_new_handler())
        p = guarded(c, call_real);
    record_new(c, p);
    return p;
}

// Handles all forms except the fast path of the plain operators. An alignment is never 0 in C++.
static WRAP_COLD void *new_slow(struct call *c, void *p)
{
    if (operators_known() == WRAP_OPERATORS_OWN)
        p = guarded(c, call_real);
    else
        return standard_new_slow(c, p ? p : standard_alloc(c->size, c->align));
    record_new(c, p);
    return p;
}

void *wrap_new(enum event_kind kind, size_t size, const void *nothrow, void *p, const void *caller)
{
    if (p && producer_put_retry(kind, size, (uintptr_t)p, caller, __builtin_frame_address(0)))
        return p;
    struct call c = {.kind = kind, .size = size, .nothrow = nothrow, .caller = caller};
    if (!p)
        return new_slow(&c, NULL);
    record_new(&c, p);
    return p;
}

static void *aligned_new(enum event_kind kind, size_t size, size_t align, const void *nothrow,
                         const void *caller)
{
    struct call c = {
        .kind = kind, .size = size, .align = align, .nothrow = nothrow, .caller = caller};
    return new_slow(&c, NULL);
}

// Frees the block with a real operator, after the event has been recorded.
static WRAP_COLD void call_real_delete(enum event_kind kind, void *p, uintptr_t second,
                                       uintptr_t third)
{
    void *found = real[kind] ? real[kind] : real[HT_DELETE];
    void (*operator)(void *, uintptr_t, uintptr_t) = (void (*)(void *, uintptr_t, uintptr_t))found;
    uint64_t begin = producer_call_begin();
    uint32_t was = producer_enter(PRODUCER_IN_OPERATOR);
    operator(p, second, third);
    producer_leave(was);
    producer_call_end(begin);
}

void wrap_delete(enum event_kind kind, void *p, uintptr_t second, uintptr_t third)
{
    if (operators_known() == WRAP_OPERATORS_OWN)
        call_real_delete(kind, p, second, third);
    else
        wrap_free(p);
}

static void record_delete(enum event_kind kind, void *p, size_t size, size_t align,
                          const void *caller)
{
    const struct event ev = {.kind = kind, .ptr = (uintptr_t)p, .size = size, .align = align};
    operators_known(); // sets next_operators_are_malloc for the producer
    producer_record(&ev, caller);
}

#define NEW_ALIGNED(symbol, kind, parameters, nothrow)                                             \
    WRAPPER void *symbol parameters;                                                               \
    void *symbol parameters                                                                        \
    {                                                                                              \
        return aligned_new(kind, size, align, nothrow, WRAP_CALLER);                               \
    }
#define SIZE_ALIGN         (size_t size, size_t align)
#define SIZE_ALIGN_NOTHROW (size_t size, size_t align, const void *nothrow)
NEW_ALIGNED(_ZnwmSt11align_val_t, HT_NEW_ALIGNED, SIZE_ALIGN, NULL)
NEW_ALIGNED(_ZnamSt11align_val_t, HT_NEW_ARRAY_ALIGNED, SIZE_ALIGN, NULL)
NEW_ALIGNED(_ZnwmSt11align_val_tRKSt9nothrow_t, HT_NEW_ALIGNED_NOTHROW, SIZE_ALIGN_NOTHROW, nothrow)
NEW_ALIGNED(_ZnamSt11align_val_tRKSt9nothrow_t, HT_NEW_ARRAY_ALIGNED_NOTHROW, SIZE_ALIGN_NOTHROW,
            nothrow)

void wrap_record_delete(enum event_kind kind, void *p, size_t size, const void *caller)
{
    bool done = event_infos[kind].form == HT_FORM_SIZED
                    ? producer_put_rebased(kind, 1, size, (uintptr_t)p, 0)
                    : producer_retry_plain(kind, (uintptr_t)p);
    if (!done)
        record_delete(kind, p, size, 0, caller);
    wrap_delete(kind, p, size, 0);
}

// `second` and `third` are the arguments after the block.
#define DELETE(symbol, kind, parameters, size, align, second, third)                               \
    WRAPPER void symbol parameters;                                                                \
    void symbol parameters                                                                         \
    {                                                                                              \
        record_delete(kind, p, size, align, WRAP_CALLER);                                          \
        wrap_delete(kind, p, second, third);                                                       \
    }
#define NOTHROW       (void *p, uintptr_t nothrow)
#define ALIGN         (void *p, size_t align)
#define SIZED         (void *p, size_t size, size_t align)
#define ALIGN_NOTHROW (void *p, size_t align, uintptr_t nothrow)
DELETE(_ZdlPvRKSt9nothrow_t, HT_DELETE_NOTHROW, NOTHROW, 0, 0, nothrow, 0)
DELETE(_ZdaPvRKSt9nothrow_t, HT_DELETE_ARRAY_NOTHROW, NOTHROW, 0, 0, nothrow, 0)
DELETE(_ZdlPvSt11align_val_t, HT_DELETE_ALIGNED, ALIGN, 0, align, align, 0)
DELETE(_ZdaPvSt11align_val_t, HT_DELETE_ARRAY_ALIGNED, ALIGN, 0, align, align, 0)
DELETE(_ZdlPvmSt11align_val_t, HT_DELETE_SIZED_ALIGNED, SIZED, size, align, size, align)
DELETE(_ZdaPvmSt11align_val_t, HT_DELETE_ARRAY_SIZED_ALIGNED, SIZED, size, align, size, align)
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, HT_DELETE_ALIGNED_NOTHROW, ALIGN_NOTHROW, 0, align,
       align, nothrow)
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, HT_DELETE_ARRAY_ALIGNED_NOTHROW, ALIGN_NOTHROW, 0,
       align, align, nothrow)
