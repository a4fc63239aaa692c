// A library that replaces the functions in names.h (lines X(NAME)). Before it calls the real
// function, it locks a mutex, allocates, and calls dlopen, except in nested calls of the same
// function. It works only on x86-64.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

static const char *const names[] = {
#define X(name) #name,
#include "names.h"
#undef X
};

enum { N = sizeof names / sizeof *names };

typedef void *(*dlsym_function)(void *, const char *);

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static void *real[N];
static dlsym_function real_dlsym;
static _Thread_local char inside[N] __attribute__((tls_model("initial-exec")));

static void *find(size_t i)
{
    if (!real_dlsym)
        real_dlsym = (dlsym_function)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (!real[i])
        real[i] = real_dlsym(RTLD_NEXT, names[i]);
    return real[i];
}

static void meddle(void)
{
    pthread_mutex_lock(&lock);
    void *p = malloc(100);
    dlopen("libm.so.6", RTLD_LAZY | RTLD_LOCAL);
    free(p);
    pthread_mutex_unlock(&lock);
}

// Returns the real function, to which the stub jumps.
void *interposer_enter(size_t i) __attribute__((visibility("hidden")));
void *interposer_enter(size_t i)
{
    if (!inside[i]) {
        inside[i] = 1;
        meddle();
        inside[i] = 0;
    }
    return find(i);
}

__asm__(".text\n"
        "interposer_common:\n"
        "  push %rdi\n push %rsi\n push %rdx\n push %rcx\n push %r8\n push %r9\n push %rax\n"
        "  mov %r11, %rdi\n"
        "  call interposer_enter\n"
        "  mov %rax, %r11\n"
        "  pop %rax\n pop %r9\n pop %r8\n pop %rcx\n pop %rdx\n pop %rsi\n pop %rdi\n"
        "  jmp *%r11\n"
        ".set interposer_number, 0\n");

#define X(name)                                                                                    \
    __asm__(".globl " #name "\n.type " #name ", @function\n" #name                                 \
            ":\n  mov $interposer_number, %r11\n"                                                  \
            "  jmp interposer_common\n.set interposer_number, interposer_number + 1\n");
#include "names.h"
