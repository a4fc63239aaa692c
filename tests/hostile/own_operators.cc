// A library that replaces only operator new and delete, as applications do.
#include <cstdlib>
#include <new>
void *operator new(size_t n)
{
    void *p = malloc(n ? n : 1);
    if (!p)
        throw std::bad_alloc();
    return p;
}
void operator delete(void *p) noexcept
{
    free(p);
}
