// Calls malloc from known functions for the tests of call sites:
//   stacks deep N | threads N | fork | exec | wild | signal | context | edge
// Every call has a chain of callers of a known length. Prints its calls.
#include <heaptape/heaptape.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

static void *volatile sink;

NOINLINE static void leaf(size_t size)
{
    sink = malloc(size);
    free(sink);
    __asm__ volatile("");
}

NOINLINE static void deep(int n, size_t size)
{
    if (n)
        deep(n - 1, size);
    else
        leaf(size);
    __asm__ volatile("");
}

static void *thread(void *arg)
{
    deep((int)(intptr_t)arg, 7001);
    return NULL;
}

static void threads(int n)
{
    for (int i = 0; i < n; i++) {
        pthread_t t;
        pthread_create(&t, NULL, thread, (void *)(intptr_t)i);
        pthread_join(t, NULL);
    }
}

static void handler(int number)
{
    (void)number;
    deep(3, 7003);
}

// Runs the handler on an alternate stack, where the unwinder must not follow the chain.
static void on_signal(void)
{
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    struct sigaction act = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &act, NULL);
    raise(SIGUSR1);
}

static ucontext_t back, there;

static void in_context(void)
{
    deep(3, 7004);
}

static void context(void)
{
    char *stack = malloc(65536);
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = 65536;
    there.uc_link = &back;
    makecontext(&there, in_context, 0);
    swapcontext(&back, &there);
    deep(3, 7004);
}

#if defined(__x86_64__)
static void *volatile edge_page;

// Unmaps and maps the page after the stack repeatedly.
static void *flicker(void *stop)
{
    while (!*(volatile int *)stop) {
        mmap(edge_page, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        mmap(edge_page, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
             0);
    }
    return NULL;
}

// Calls malloc with the given value in the frame pointer. The function has no unwind table, so the
// unwinder follows the frame pointer.
void *astray(uint64_t frame);
__asm__(".text\n"
        ".type astray, @function\n"
        "astray:\n\tpush %rbp\n\tmov %rdi, %rbp\n\tmov $7008, %edi\n\tcall malloc@PLT\n"
        "\tpop %rbp\n\tret\n.size astray, . - astray");

static void edge(void)
{
    uint64_t end = (uintptr_t)edge_page;
    for (uint64_t i = 0; i < 64; i++)
        free(astray(end - 256 + 8 * i));
    free(astray(0));
    free(astray(UINT64_MAX & ~7ull));
    free(astray(1ull << 47));
}

// Runs on a stack of one page. Another thread unmaps and maps the page after the stack.
static void on_edge(void)
{
    static volatile int stop;
    pthread_t t;
    char *stack = mmap(NULL, 5 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    edge_page = stack + 4 * 4096;
    // Fills the end of the stack with words that look like frames.
    for (uint64_t *w = (uint64_t *)(stack + 4 * 4096) - 32, i = 0; i < 32; i++)
        w[i] = i % 2 ? (uintptr_t)deep + 1 : (uintptr_t)&w[i + 2];
    pthread_create(&t, NULL, flicker, (void *)&stop);
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = 4 * 4096 - 256;
    there.uc_link = &back;
    makecontext(&there, edge, 0);
    swapcontext(&back, &there);
    stop = 1;
    pthread_join(t, NULL);
}

// Calls malloc with this value in the frame pointer. The values include addresses of the stack,
// unmapped addresses, and addresses of the next page.
NOINLINE static void *malloc_with(uint64_t frame)
{
    void *p;
    __asm__ volatile(
        "push %%rbp\n\tmov %1, %%rbp\n\tmov $7005, %%edi\n\tcall malloc@PLT\n\tpop %%rbp"
        : "=a"(p)
        : "r"(frame)
        : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1",
          "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
    return p;
}

static void wild(void)
{
    uint64_t here[64] __attribute__((aligned(16)));
    memset(here, 0xff, sizeof here);
    here[0] = (uintptr_t)&here[0]; // points to itself
    here[2] = (uintptr_t)&here[8];
    here[3] = (uintptr_t)wild;
    here[8] = (uintptr_t)&here[4]; // points backwards
    const uint64_t frames[] = {
        0,
        1,
        8,
        (uintptr_t)here,
        (uintptr_t)&here[2],
        (uintptr_t)here + 1,
        (uintptr_t)&here[62],
        UINT64_MAX,
        UINT64_MAX & ~7ull,
        1ull << 47,
        (uintptr_t)&sink,
        (uintptr_t)here + (1 << 20),
    };
    for (unsigned i = 0; i < sizeof frames / sizeof *frames; i++)
        free(malloc_with(frames[i]));
}
#define ASTRAY astray
#else
#define ASTRAY 1
static void wild(void)
{
}
#endif

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int n = argc > 2 ? atoi(argv[2]) : 1;
    if (!strcmp(what, "deep")) {
        for (int i = 0; i < n; i++)
            deep(i, 7000);
    } else if (!strcmp(what, "threads")) {
        threads(n);
    } else if (!strcmp(what, "fork")) {
        deep(2, 7002);
        if (fork() == 0) {
            deep(2, 7002);
            _exit(0);
        }
        wait(NULL);
    } else if (!strcmp(what, "signal")) {
        on_signal();
    } else if (!strcmp(what, "context")) {
        context();
#if defined(__x86_64__)
    } else if (!strcmp(what, "edge")) {
        on_edge();
#endif
    } else if (!strcmp(what, "reset")) {
        deep(2, 7006);
        if (heaptape_reset() != 0)
            return 1;
        deep(2, 7006);
    } else if (!strcmp(what, "wild")) {
        wild();
    }
    printf(
        "deep %p\nleaf %p\nmain %p\nthread %p\nhandler %p\nin_context %p\ncontext %p\nastray %p\n",
        (void *)deep, (void *)leaf, (void *)main, (void *)thread, (void *)handler,
        (void *)in_context, (void *)context, (void *)(uintptr_t)ASTRAY);
    return 0;
}
