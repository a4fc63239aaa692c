// Replacements for libc's memory and string functions (see libc.h). The compiler may emit calls to
// some of these functions. The fast path of an event calls none of them.
#include <stddef.h>
#include <string.h>

#define HIDDEN __attribute__((visibility("hidden")))

HIDDEN void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
    void *start = to;
#ifdef __x86_64__
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n)::"memory");
#else
    char *t = to;
    for (const char *f = from; n; n--)
        *t++ = *f++;
#endif
    return start;
}

HIDDEN void *memmove(void *to, const void *from, size_t n)
{
    char *t = to;
    const char *f = from;
    if ((size_t)(t - f) >= n)
        return memcpy(to, from, n);
    while (n--)
        t[n] = f[n];
    return to;
}

HIDDEN void *memset(void *to, int byte, size_t n)
{
    void *start = to;
#ifdef __x86_64__
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(byte) : "memory");
#else
    for (char *t = to; n; n--)
        *t++ = (char)byte;
#endif
    return start;
}

HIDDEN int memcmp(const void *a, const void *b, size_t n)
{
    const unsigned char *x = a, *y = b;
    for (; n; n--, x++, y++) {
        if (*x != *y)
            return *x - *y;
    }
    return 0;
}

HIDDEN void *memchr(const void *in, int byte, size_t n)
{
    for (const unsigned char *at = in; n; n--, at++) {
        if (*at == (unsigned char)byte)
            return (void *)at;
    }
    return NULL;
}

HIDDEN size_t strnlen(const char *s, size_t most)
{
    size_t n = 0;
    while (n < most && s[n])
        n++;
    return n;
}

HIDDEN size_t strlen(const char *s)
{
    return strnlen(s, (size_t)-1);
}

HIDDEN int strncmp(const char *a, const char *b, size_t n)
{
    for (; n; n--, a++, b++) {
        if (*a != *b || !*a)
            return (unsigned char)*a - (unsigned char)*b;
    }
    return 0;
}

HIDDEN int strcmp(const char *a, const char *b)
{
    return strncmp(a, b, (size_t)-1);
}

HIDDEN char *strchr(const char *s, int c)
{
    for (; *s != (char)c; s++) {
        if (!*s)
            return NULL;
    }
    return (char *)s;
}

HIDDEN char *strrchr(const char *s, int c)
{
    for (size_t n = strlen(s) + 1; n--;) {
        if (s[n] == (char)c)
            return (char *)s + n;
    }
    return NULL;
}

HIDDEN char *strstr(const char *in, const char *what)
{
    size_t n = strlen(what);
    for (; strncmp(in, what, n) != 0; in++) {
        if (!*in)
            return NULL;
    }
    return (char *)in;
}

HIDDEN size_t strspn(const char *s, const char *set)
{
    size_t n = 0;
    while (s[n] && strchr(set, s[n]))
        n++;
    return n;
}

HIDDEN size_t strcspn(const char *s, const char *set)
{
    size_t n = 0;
    while (s[n] && !strchr(set, s[n]))
        n++;
    return n;
}

HIDDEN char *stpcpy(char *restrict to, const char *restrict from)
{
    size_t n = strlen(from);
    return (char *)memcpy(to, from, n + 1) + n;
}
