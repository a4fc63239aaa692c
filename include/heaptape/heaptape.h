// Control of a running capture, from inside the program. Nothing needs to be linked: where libheaptape.so is not
// preloaded, the calls do nothing.
#ifndef HEAPTAPE_HEAPTAPE_H
#define HEAPTAPE_HEAPTAPE_H

#ifdef __cplusplus
extern "C" {
#endif

// Puts a mark with this text (its first 1024 bytes) into the trace, at this point of the calling thread. NULL is an
// empty text.
void heaptape_mark(const char *text) __attribute__((weak));

#if defined(__PIC__) || defined(__PIE__)
#define heaptape_mark(text) (heaptape_mark ? heaptape_mark(text) : (void)0)
#else
// In code that is not position-independent the linker settles a weak symbol that nobody defines: it would be NULL in
// every run.
void *dlsym(void *handle, const char *symbol)
#if defined(__cplusplus) && defined(__THROW)
    __THROW
#endif
    ;
static inline void heaptape_find_mark(const char *text)
{
    static void (*found)(const char *);
    static int looked;
    if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
        *(void **)&found = dlsym((void *)0, "heaptape_mark");
        __atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
    }
    if (found)
        found(text);
}
#define heaptape_mark(text) heaptape_find_mark(text)
#endif

#ifdef __cplusplus
}
#endif

#endif
