// The clock of heaptape. Traced programs read the kernel's clock (src/capture/libc/libc.c), and
// their stamps are compared with the recorder's stamps. Therefore a library that replaces
// clock_gettime, such as libfaketime, must not change the recorder's clock. A definition in the
// executable takes precedence over definitions in preloaded libraries.
//
// The function here calls the kernel's function in the vDSO, because a system call takes about ten
// times as long.
#include <dlfcn.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef __aarch64__
#define NAME "__kernel_clock_gettime"
#else
#define NAME "__vdso_clock_gettime"
#endif

static int (*in_vdso)(clockid_t, struct timespec *);

__attribute__((constructor)) static void find_clock(void)
{
    void *vdso = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (vdso)
        *(void **)&in_vdso = dlsym(vdso, NAME);
}

// The vDSO returns a negative errno.
int clock_gettime(clockid_t id, struct timespec *t)
{
    return in_vdso && in_vdso(id, t) == 0 ? 0 : (int)syscall(SYS_clock_gettime, id, t);
}
