// Checks that recording is invisible to the program: errno and results of each wrapped call that
// succeeds or fails. The output is the same with and without the capture library.
//   kept           prints errno and the results of the calls
//   kept tls MANY  counts thread_local objects in MANY threads whose destructors allocate and free
#include "told.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <new>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const size_t huge = (size_t)1 << 60;

// Prints whether the call returned a result and the value of errno, and returns the result.
template <typename Result> static Result after(const char *call, Result result)
{
    int now = errno;
    printf("%s: %s, errno %d\n", call, result ? "some" : "none", now);
    errno = 77;
    return result;
}

static void after(const char *call)
{
    (void)after(call, 1);
}

static size_t hidden(size_t n)
{
    TOLD_HIDE(n);
    return n;
}

static void c_calls()
{
    void *p = after("malloc", malloc(hidden(100)));
    free(p), after("free");
    free(nullptr), after("free NULL");
    after("malloc huge", malloc(hidden(huge)));
    p = after("calloc", calloc(hidden(3), 100));
    after("calloc huge", calloc(hidden(huge), 100));
    p = after("realloc", realloc(p, hidden(5000)));
    after("realloc huge", realloc(p, hidden(huge)));
    after("realloc to nothing", realloc(p, hidden(0)));
    p = after("reallocarray", reallocarray(nullptr, hidden(10), 10));
    after("reallocarray huge", reallocarray(p, hidden(huge), 100));
    after("malloc_usable_size", malloc_usable_size(p));
    free(p);
    free(after("memalign", memalign(4096, hidden(10))));
    after("memalign huge", memalign(4096, hidden(huge)));
    free(after("aligned_alloc", aligned_alloc(1 << 20, hidden(1 << 20))));
    after("aligned_alloc huge", aligned_alloc(64, hidden(huge)));
    after("posix_memalign", !posix_memalign(&p, 64, hidden(100)));
    free(p);
    after("posix_memalign huge", posix_memalign(&p, 64, hidden(huge)) == ENOMEM);
    after("posix_memalign of no power", posix_memalign(&p, hidden(24), 100) == EINVAL);
    free(after("valloc", valloc(hidden(100))));
    after("valloc huge", valloc(hidden(huge)));
    after("pvalloc",
          // The block is not freed. Some allocators lack pvalloc, so the block belongs to libc, and
          // their free cannot free it.
          pvalloc(hidden(100)));
}

static void failing_new(const char *call, void *(*take)(size_t))
{
    try {
        take(hidden(huge));
    } catch (const std::bad_alloc &) {
        after(call);
    }
}

static void cxx_calls()
{
    const std::align_val_t line = std::align_val_t(64);
    void *p = after("new", operator new(hidden(10)));
    operator delete(p), after("delete");
    p = after("new[]", operator new[](hidden(10)));
    operator delete[](p, hidden(10)), after("delete[] of a size");
    p = after("new aligned", operator new(hidden(10), line));
    operator delete(p, hidden(10), line), after("delete aligned of a size");
    after("new nothrow huge", operator new(hidden(huge), std::nothrow));
    after("new aligned nothrow huge", operator new(hidden(huge), line, std::nothrow));
    failing_new("new huge", [](size_t n) { return operator new(n); });
    failing_new("new[] huge", [](size_t n) { return operator new[](n); });
    failing_new("new aligned huge", [](size_t n) { return operator new(n, std::align_val_t(64)); });
}

static void *nothing(void *arg)
{
    return arg;
}

static void other_calls()
{
    pthread_t thread;
    FILE *null = fopen("/dev/null", "w");
    errno = 77;
    after("pthread_create", !pthread_create(&thread, nullptr, nothing, nullptr));
    pthread_join(thread, nullptr);
    errno = 77;
    after("malloc_info", !malloc_info(0, null));
    errno = 77; // changed by stdio
    after("mallopt", mallopt(M_TRIM_THRESHOLD, 128 << 10));
    mallinfo2(), after("mallinfo2");
    malloc_trim(0), after("malloc_trim");
    void *p = after("mmap", mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    after("munmap", !munmap(p, 4096));
    after("mmap of nothing",
          mmap(nullptr, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    after("munmap of no page", !munmap((char *)p + 1, 4096));
    after("mremap of nothing", mremap(nullptr, 4096, 8192, 0) != MAP_FAILED);
    after("sbrk", sbrk(0) != nullptr);
    after("sbrk huge", sbrk((intptr_t)huge) != (void *)-1);
    fclose(null);
}

static pthread_key_t key;
static sem_t created; // so that the lines of the threads are in a fixed order

// Runs in an early round of destructors of an exiting thread.
static void at_thread_exit(void *round)
{
    after("destructor of a thread-specific value");
    if (round == &key)
        pthread_setspecific(key, &errno);
}

static void *with_value(void *)
{
    sem_wait(&created);
    errno = 77;
    pthread_setspecific(key, &key);
    return nullptr;
}

// Threads start while the library still has to record the end of earlier threads.
static void process_calls()
{
    sem_init(&created, 0, 0);
    pthread_key_create(&key, at_thread_exit);
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        after("pthread_create", !pthread_create(&thread, nullptr, with_value, nullptr));
        sem_post(&created);
        after("pthread_join", !pthread_join(thread, nullptr));
    }
    void *library = after("dlopen", dlopen("libm.so.6", RTLD_NOW));
    after("dlclose", !dlclose(library));
    fflush(stdout);
    errno = 77;
    pid_t child = fork();
    after(child ? "fork" : "fork in the child");
    if (!child)
        exit(0);
    after("waitpid", waitpid(child, nullptr, 0) == child);
    after("prctl", !prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
    after("prctl of nothing", !prctl(-1, 0, 0, 0, 0));
}

struct at_end {
    void *held = operator new(TOLD_SIZE(0));
    ~at_end()
    {
        operator delete(held);
        free(malloc(TOLD_SIZE(1)));
    }
};

static void *with_object(void *)
{
    static thread_local at_end object;
    return object.held ? nullptr : &object;
}

static int thread_locals(unsigned long many)
{
    for (unsigned long i = 0; i < many; i++) {
        pthread_t thread;
        if (pthread_create(&thread, nullptr, with_object, nullptr))
            return 1;
        pthread_join(thread, nullptr);
    }
    told_count("new", TOLD_SIZE(0), many);
    told_count("delete", TOLD_SIZE(0), many);
    told_count("malloc", TOLD_SIZE(1), many);
    told_count("free", TOLD_SIZE(1), many);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 2)
        return thread_locals(strtoul(argv[2], nullptr, 0));
    static char buffer[1 << 16];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    errno = 77;
    c_calls();
    cxx_calls();
    other_calls();
    process_calls();
    return 0;
}
