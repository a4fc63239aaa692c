#pragma once

#include "capture/producer/producer.h"
#include "capture/spool/attach.h"
#include "capture/wrap/next.h"

// The version script exports a wrapper if its symbol is in the event table.
#define WRAPPER __attribute__((visibility("default")))

// Return address of a wrapper, which identifies the call in the program.
#define WRAP_CALLER __builtin_return_address(0)

#define WRAP_COLD   __attribute__((noinline, cold))

// Returns false in a child of clone(2) whose thread-local storage is an array of zeros (CLONE_VM
// and CLONE_SETTLS). Such a child can only call functions that use no thread-local storage;
// Chromium makes one that calls chroot. The first word of a thread's control block is its own
// address on x86-64, and a pointer to a table in glibc on aarch64.
static inline bool wrap_has_thread(void)
{
    const char *at = producer_thread_pointer();
#if defined(__aarch64__)
#ifdef HEAPTAPE_DYNAMIC_TLS
    return at;
#else
    return at && *(const void *const *)(const void *)at;
#endif
#else
    return at;
#endif
}

// Records a call that allocated `p` or failed, and returns `p`. The wrapper tail-calls this
// function, so the frame of wrap_allocated replaces the wrapper's frame. `caller` is the wrapper's
// return address.
WRAP_COLD void *wrap_allocated(enum event_kind kind, size_t size, void *p, const void *caller);

// Handle the calls to free, operator new and operator delete that wrap_fast.c does not record.
// wrap_fast.c tail-calls these functions. The argument `p` of wrap_new is the result of malloc, or
// NULL if malloc failed or was not called.
WRAP_COLD void wrap_record_free(void *p, const void *caller);
WRAP_COLD void *wrap_new(enum event_kind kind, size_t size, const void *nothrow, void *p,
                         const void *caller);
WRAP_COLD void wrap_record_delete(enum event_kind kind, void *p, size_t size, const void *caller);

// Origin of the C++ operators.
enum wrap_operators { WRAP_OPERATORS_UNKNOWN = 0, WRAP_OPERATORS_STANDARD, WRAP_OPERATORS_OWN };
extern _Atomic enum wrap_operators wrap_operators __attribute__((visibility("hidden")));

// Returns true if operator new only calls malloc and operator delete only calls free. Returns false
// while this is unknown.
static inline bool wrap_operators_are_standard(void)
{
    enum wrap_operators now = atomic_load_explicit(&wrap_operators, memory_order_relaxed);
    return __builtin_expect(now == WRAP_OPERATORS_STANDARD, 1);
}

// Frees a block with the real operator, after the call has been recorded.
void wrap_delete(enum event_kind kind, void *p, uintptr_t second, uintptr_t third);

// Call the real functions. Measure the time if this call was chosen for timing.
WRAP_COLD void *wrap_timed_malloc(size_t size);
WRAP_COLD void wrap_timed_free(void *p);

static inline void wrap_free(void *p)
{
    if (producer_call_is_due())
        wrap_timed_free(p);
    else
        next.free(p);
}

// Returns the error of a call that returned `p`, or 0 if the call succeeded or `size` is 0.
uint8_t wrap_error(const void *p, size_t size);

// Sets the names of --wrap. `names` may be NULL. If `wraps` is false, the functions are redirected
// instead of wrapped, and only the function that returns usable sizes is used.
void wrap_set_names(const struct spool_wrap *names, bool wraps);

// Returns the wrapper for a function wrapped under another name, or NULL.
void *wrap_find_named(const char *name);

// Returns the address of a thunk that calls the redirected function of this index (redirect.h) and
// records the call.
uintptr_t wrap_entry_thunk(size_t index);

// Calls body(context), which may throw. If `body` throws, restores the state of the thread.
uintptr_t wrap_cxx_guard(uintptr_t (*body)(const void *context), const void *context);

// If the executable or a library of a started program defines an allocator, redirects the
// allocator's functions with a plan from the recorder. Call at startup, after producer_start.
void wrap_own_allocator(void);

// Redirect the allocator's functions in objects that the program opens from now on.
// wrap_own_watch_first also redirects _dl_debug_state, which the loader calls when its list of
// objects changes. Call wrap_own_watch_first before a started program opens an object. Call
// wrap_own_watch in a process where heaptape has redirected _dl_debug_state.
void wrap_own_watch_first(void);
void wrap_own_watch(void);

// Examines the objects that were opened. The loader calls this function before the objects' code
// runs.
void wrap_own_loads(void);

enum { WRAP_BUILD_ID_BYTES = 20 };

// Returns true if the symbol table of the executable or of its debug file, which the loader does
// not read, contains a name in entries_malloc_names.
bool wrap_has_hidden_malloc(int executable, const uint8_t *build_id);

// Like wrap_has_hidden_malloc, for names with a prefix in the symbol table of a library.
bool wrap_has_hidden_prefix(int library);

// Opens a file for reading, without blocking. Returns the descriptor, or -1.
int wrap_open_file(const char *path);

// Finds the real C++ operators. The first call to an operator would do the same, but at startup no
// other thread can hold the loader's lock.
void wrap_cxx_resolve(void);
