// The clock of heaptape. Traced programs read the kernel's clock (src/capture/libc/libc.c), and
// their stamps are compared with the recorder's stamps. Therefore a library that replaces
// clock_gettime, such as libfaketime, must not change the recorder's clock. A definition in the
// executable takes precedence over definitions in preloaded libraries.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *t)
{
    return (int)syscall(SYS_clock_gettime, id, t);
}
