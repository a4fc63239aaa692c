// Tests which functions belong to a library.
#include "analysis/symbols/symbols.h"

#include "unit.h"

static void libraries(void **state)
{
    static const char *const library[] = {
        "operator new(unsigned long)",
        "std::vector<int, std::allocator<int> >::push_back(int&&)",
        ("void std::vector<A, std::allocator<A> >::_M_realloc_insert<A "
         "const&>(__gnu_cxx::__normal_iterator<A*, x>)"),
        "std::unique_ptr<node, std::default_delete<node> > std::make_unique<node>()",
        "__gnu_cxx::new_allocator<char>::allocate(unsigned long, void const*)",
        "std::enable_if<true, void>::type std::f<int (*)(char)>(int (*)(char))",
        "alloc::vec::Vec<T,A>::reserve",
        "<alloc::string::String as core::clone::Clone>::clone",
        "__rust_alloc",
        "<&mut W as core::fmt::Write>::write_fmt",
        "<T as core::convert::Into<U>>::into",
        "<[T]>::to_vec",
        "<[u8] as alloc::borrow::ToOwned>::to_owned",
        "<str as alloc::string::ToString>::to_string",
        "<T as std::io::Read>::read_to_end",
        "<&mut alloc::string::String as core::fmt::Write>::write_str",
    };
    static const char *const own[] = {
        "main",
        "render(Request const&, std::mersenne_twister_engine<unsigned long, 32ul>&)",
        "std_like::f(int)",
        "app::make(std::string const&)",
        "(anonymous namespace)::f(std::string)",
        "void app::grow<std::string>(std::string const&)",
        "std::vector<int> app::all()",
        "app::operator+(app::big const&, app::big const&)",
        "main::{lambda(std::string)#1}::operator()(std::string) const",
        "<app::Tree as core::clone::Clone>::clone",
        "<&app::Tree as core::fmt::Debug>::fmt",
        "<T as app::Grow>::grow",
        "<str as app::Parse>::parse",
        "<[app::Tree] as app::Grow>::grow",
        "my_alloc::f",
        "malloc_wrapper",
        "0x7f0011223344",
        "",
    };
    (void)state;
    for (size_t i = 0; i < sizeof library / sizeof *library; i++) {
        if (!symbols_is_library(library[i]))
            fail_msg("%s", library[i]);
    }
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (symbols_is_library(own[i]))
            fail_msg("%s", own[i]);
    }
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(libraries)};

UNIT_MAIN(tests)
