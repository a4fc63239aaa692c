// Start and exit of the process and its threads. Also contains wrappers for calls that change the
// process's code.
#include "capture/producer/producer_private.h"
#include "capture/unwind/unwind_python.h"
#include "capture/wrap/next.h"
#include "capture/wrap/wrap.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ASK_NS = 200000, ASK_TIMES = 500 }; // time limit of the child's query: 0.1 s

// Runs in a child that shares only the spool with the program. The query may never return: an
// interrupted thread may hold one of malloc's locks, or the program may have overwritten the free
// lists and made them circular.
static _Noreturn void query_malloc(next_mallinfo2_function ask, struct spool_header *h)
{
    syscall(SYS_prctl, PR_SET_PDEATHSIG, (long)SIGKILL, 0l, 0l, 0l);
    syscall(SYS_prctl, PR_SET_DUMPABLE, 0l, 0l, 0l, 0l); // no core file
    struct mallinfo2 m = ask();
    atomic_store(&h->malloc_in_use_bytes, m.uordblks + m.hblkhd);
    atomic_store(&h->malloc_system_bytes, m.arena + m.hblkhd);
    for (;;)
        syscall(SYS_exit_group, 0l);
}

static void wait_for_child(long child)
{
    const struct timespec pause = {.tv_nsec = ASK_NS};
    for (unsigned i = 0; i < ASK_TIMES; i++) {
        if (syscall(SYS_wait4, child, NULL, (long)(__WALL | WNOHANG), NULL) != 0)
            return;
        syscall(SYS_clock_nanosleep, (long)CLOCK_MONOTONIC, 0l, &pause, NULL);
    }
    syscall(SYS_kill, child, (long)SIGKILL);
    syscall(SYS_wait4, child, NULL, (long)__WALL, NULL);
}

// If objects bypass the malloc wrappers, records how many bytes are in use in total. The child
// sends no signal when it exits and is invisible to wait(2). All signals are blocked, so that a
// fault in the child kills the child without running the program's handlers.
static void measure_bypassed(void)
{
    next_report_deepbound();
    struct spool_header *h = producer_malloc_query_header();
    next_mallinfo2_function ask = h ? next_mallinfo2() : NULL;
    if (!ask)
        return;
    int saved_errno = errno;
    uint64_t mask = producer_signals_block();
    long child = syscall(SYS_clone, 0l, 0l, 0l, 0l, 0l);
    if (child == 0)
        query_malloc(ask, h);
    if (child > 0)
        wait_for_child(child);
    producer_signals_restore(mask);
    errno = saved_errno;
}

// The real function identifies the calling object by the return address, so this is a tail call.
WRAPPER void *dlopen(const char *path, int flags)
{
    wrap_own_watch_first();
    return next.dlopen(path, flags);
}

WRAPPER void *dlmopen(Lmid_t space, const char *path, int flags)
{
    wrap_own_watch_first();
    return next.dlmopen ? next.dlmopen(space, path, flags) : NULL; // musl lacks the function
}

// The next object may be loaded at the same address, so report this object now.
WRAPPER int dlclose(void *handle)
{
    next_report_deepbound();
    bool python = unwind_python_forget();
    int rc = next.dlclose(handle);
    if (python)
        unwind_python_find();
    atomic_fetch_add_explicit(&unwind_age, 1, memory_order_relaxed);
    return rc;
}

// Exits without running the libraries' destructors. Shells call this function. If the function is
// redirected, exit also calls the wrapper, after the destructors.
WRAPPER _Noreturn void _exit(int status)
{
    if (wrap_has_thread() && !next_is_libc(WRAP_CALLER)) {
        measure_bypassed();
        producer_exit();
        producer_alone_finish();
    }
    next._exit(status);
    __builtin_unreachable();
}

WRAPPER _Noreturn void _Exit(int status)
{
    _exit(status);
}

// First function of a new thread. It ends with a tail call, so that the outermost frame in stack
// traces is the program's own function.
static void *run_thread(void *data)
{
    struct producer_thread *t = data;
    void *(*start)(void *) = t->start;
    void *arg = t->arg;
    producer_thread_begin(t);
    return start(arg);
}

WRAPPER int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
                           void *arg)
{
    struct producer_thread *t = producer_thread_create(start, arg);
    if (!t)
        return next.pthread_create(thread, attr, start, arg);
    int error = next.pthread_create(thread, attr, run_thread, t);
    if (error)
        producer_thread_cancel(t);
    return error;
}

static bool is_started;

static void start_capture(void)
{
    int saved_errno = errno;
    if (next_is_loaded("libstdc++.so") || next_is_loaded("libc++"))
        wrap_cxx_resolve();
    // The recorder reads the path of the allocator only once, soon after producer_start, and the
    // search for allocators skips the malloc in use. musl's loader has not called malloc before.
    next_resolve();
    producer_start();
    wrap_own_allocator();
    pthread_atfork(producer_before_fork, NULL, producer_after_fork);
    is_started = true;
    errno = saved_errno;
}

int __cxa_atexit(void (*function)(void *), void *argument, void *object); // ABI of C++

// Runs after the destructors of all libraries. Reading the pages of their code can raise RSS above
// the peak.
static void on_end(void *unused)
{
    (void)unused;
    producer_finish_last();
}

WRAPPER __typeof__(*next.__libc_start_main) __libc_start_main; // not declared in any header

// The executable's startup code calls this function after the constructors of all libraries. It
// ends with a tail call of the real function, so that the stacks of the program do not contain the
// wrapper.
WRAPPER int __libc_start_main(int (*begin)(int, char **, char **), int argc, char **argv,
                              void (*init)(void), void (*fini)(void), void (*loader_fini)(void),
                              void *stack_end)
{
    if (!is_started)
        start_capture();
    producer_alone_share();
    // Functions run in reverse order. The C library will register the destructors of all libraries.
    __cxa_atexit(on_end, NULL, NULL);
    return next.__libc_start_main(begin, argc, argv, init, fini, loader_fini, stack_end);
}

// Returns true if a sanitizer defines malloc. The constructor of a sanitizer must run first,
// because it may replace malloc, or abort the process. The recorder names AddressSanitizer as the
// cause of an abort only if no events were recorded before.
static bool has_sanitizer(void)
{
    static const char *const functions[] = {"__asan_init", "__tsan_init", "__msan_init",
                                            "__lsan_init", "__hwasan_init"};
    bool found = false;
    for (size_t i = 0; i < sizeof functions / sizeof *functions && !found; i++)
        found = next_find_definition(functions[i], &is_started);
    return found;
}

// Runs as the first constructor of the process, because the library is linked with -z initfirst.
// The C library is not initialized yet. glibc passes the arguments of main to constructors. Other C
// libraries do not always pass them, but have set environ.
static __attribute__((constructor)) void on_load(int argc, char **argv, char **environment)
{
    (void)argc;
    (void)argv;
    if (next_is_injected())
        return;
    if (!environ)
        producer_set_environment(environment);
    next_resolve();
    if (!has_sanitizer())
        start_capture();
}

static __attribute__((destructor)) void on_unload(void)
{
    measure_bypassed();
    producer_finish();
    producer_alone_finish();
}
