// Calls every form of operator new and delete, in usual cases and so that they fail: with
// bad_alloc, with a new_handler that frees memory, and with a new_handler that throws. Checks that
// exceptions propagate.
#include "told.h"

#include <new>

static const size_t huge = (size_t)1 << 60;
static const std::align_val_t line = std::align_val_t(64);

static void took(const char *kind, size_t size, size_t align, const void *p)
{
    told(kind, nullptr, size, 0, align, p, p ? 0 : ENOMEM);
}

static void gives(const char *kind, const void *p, size_t size, size_t align)
{
    told(kind, p, size, 0, align, nullptr, 0);
}

static void plain_forms()
{
    void *p = operator new(100), *q = operator new[](0), *r = operator new(70000);
    took("new", 100, 0, p);
    took("new[]", 0, 0, q);
    took("new", 70000, 0, r);
    gives("delete", p, 0, 0), operator delete(p);
    gives("delete[]", q, 0, 0), operator delete[](q);
    gives("delete", r, 0, 0), operator delete(r);
    gives("delete", nullptr, 0, 0), operator delete(nullptr);
    p = operator new(100, std::nothrow), q = operator new[](100, std::nothrow);
    took("new(nothrow)", 100, 0, p);
    took("new[](nothrow)", 100, 0, q);
    gives("delete(nothrow)", p, 0, 0), operator delete(p, std::nothrow);
    gives("delete[](nothrow)", q, 0, 0), operator delete[](q, std::nothrow);
    p = operator new(100), q = operator new[](70000);
    took("new", 100, 0, p);
    took("new[]", 70000, 0, q);
    gives("delete(size)", p, 100, 0), operator delete(p, 100);
    gives("delete[](size)", q, 70000, 0), operator delete[](q, 70000);
}

static void aligned_forms()
{
    void *p = operator new(100, line), *q = operator new[](100, line);
    took("new(align)", 100, 64, p);
    took("new[](align)", 100, 64, q);
    gives("delete(align)", p, 0, 64), operator delete(p, line);
    gives("delete[](align)", q, 0, 64), operator delete[](q, line);
    p = operator new(0, line, std::nothrow), q = operator new[](100, line, std::nothrow);
    took("new(align,nothrow)", 0, 64, p);
    took("new[](align,nothrow)", 100, 64, q);
    gives("delete(align,nothrow)", p, 0, 64), operator delete(p, line, std::nothrow);
    gives("delete[](align,nothrow)", q, 0, 64), operator delete[](q, line, std::nothrow);
    p = operator new(100, line), q = operator new[](100, line);
    took("new(align)", 100, 64, p);
    took("new[](align)", 100, 64, q);
    gives("delete(size,align)", p, 100, 64), operator delete(p, 100, line);
    gives("delete[](size,align)", q, 100, 64), operator delete[](q, 100, line);
}

template <typename Exception, typename Call> static void throws(const char *what, Call call)
{
    try {
        call();
    } catch (const Exception &) {
        return;
    }
    printf("%s does not throw\n", what);
    exit(1);
}

static size_t size = huge;
static void *volatile sink; // prevents the compiler from removing calls

static void failing_forms()
{
    throws<std::bad_alloc>("new", [] { sink = operator new(size); });
    throws<std::bad_alloc>("new[]", [] { sink = operator new[](size); });
    throws<std::bad_alloc>("new(align)", [] { sink = operator new(size, line); });
    throws<std::bad_alloc>("new[](align)", [] { sink = operator new[](size, line); });
    if (operator new(size, std::nothrow) || operator new(size, line, std::nothrow))
        exit(1);
}

static int handled;
static void *reserve;

static void handler_that_frees()
{
    if (handled++ == 2)
        throw 42;
    free(reserve);
    reserve = nullptr;
}

static void with_handler()
{
    reserve = malloc(TOLD_SIZE(1));
    std::set_new_handler(handler_that_frees);
    throws<int>("a new_handler", [] { sink = operator new(size); });
    std::set_new_handler([] { throw std::bad_alloc(); });
    if (operator new[](size, std::nothrow))
        exit(1);
    std::set_new_handler(nullptr);
}

int main(int argc, char **)
{
    told_begin();
    plain_forms();
    aligned_forms();
    told_end();
    if (argc > 1) {
        failing_forms();
        with_handler();
        // Exceptions through the wrappers must not leave state behind.
        sink = operator new(TOLD_SIZE(2));
        operator delete(sink);
        throws<std::bad_alloc>("new", [] { sink = operator new(size); });
    }
    return 0;
}
