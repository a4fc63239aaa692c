// Opens a library and calls work(1000) in it: deepbind LIBRARY HOW. HOW consists of any of these
// letters: d uses RTLD_DEEPBIND; l binds lazily; n omits the call; t makes the call while another
// thread runs; f makes the call in a fork child; F forks after the call; v also calls vfork; c
// closes the library; x ends by _exit.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void *idle(void *x)
{
    pause();
    return 0;
}
int main(int n, char **v)
{
    const char *how = v[2];
    pthread_t t;
    int deep = strchr(how, 'd') ? RTLD_DEEPBIND : 0;
    if (strchr(how, 't'))
        pthread_create(&t, 0, idle, 0);
    if (strchr(how, 'f') && fork()) {
        wait(0);
        _exit(0);
    }
    if (strchr(how, 'v') && !vfork())
        _exit(0);
    void *h = dlopen(v[1], (strchr(how, 'l') ? RTLD_LAZY : RTLD_NOW) | deep);
    if (!h) {
        puts(dlerror());
        return 1;
    }
    void (*f)(int) = (void (*)(int))dlsym(h, "work");
    if (!strchr(how, 'n'))
        f(1000);
    if (strchr(how, 'F') && fork())
        wait(0);
    free(malloc(10));
    if (strchr(how, 'v') && !vfork())
        _exit(0);
    if (strchr(how, 'c'))
        dlclose(h);
    if (strchr(how, 'x'))
        _exit(0);
    return 0;
}
