#include "record/processes/guard.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static struct guard *guarded;

// Maps zeros from the faulting address to the end of the mapping, because the rest of a truncated
// file is missing too.
static void on_bus_error(int sig, siginfo_t *info, void *context)
{
    (void)context;
    int saved_errno = errno;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)info->si_addr & -page;
    struct guard *g = guarded;
    while (g && (at < (uintptr_t)g->at || at - (uintptr_t)g->at >= g->bytes))
        g = g->next;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    size_t bytes = g ? g->bytes - (at - (uintptr_t)g->at) : 0;
    if (!g || mmap((void *)at, bytes, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED)
        signal(sig, SIG_DFL); // the fault occurs again after the return
    else
        atomic_store(&g->broken, true);
    errno = saved_errno;
}

void guard_install(void)
{
    struct sigaction a = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigset_t bus;
    sigemptyset(&bus);
    sigaddset(&bus, SIGBUS);
    sigaction(SIGBUS, &a, NULL);
    sigprocmask(SIG_UNBLOCK, &bus, NULL);
}

void guard_add(struct guard *g, void *at, size_t bytes)
{
    struct guard **link = guarded ? &guarded->next : &guarded;
    *g = (struct guard){.next = *link, .link = link, .at = at, .bytes = bytes};
    if (g->next)
        g->next->link = &g->next;
    *link = g;
}

void guard_remove(struct guard *g)
{
    if (!g->link)
        return;
    *g->link = g->next;
    if (g->next)
        g->next->link = g->link;
    g->link = NULL;
}

struct guard *guard_new(void *at, size_t bytes)
{
    struct guard *g = malloc(sizeof *g);
    if (g)
        guard_add(g, at, bytes);
    return g;
}

void guard_free(struct guard *g)
{
    if (g)
        guard_remove(g);
    free(g);
}
