// libtest-bogus.so: a library that can be preloaded, but does not define an allocator.
extern int nothing_to_do_with_malloc;
int nothing_to_do_with_malloc;
