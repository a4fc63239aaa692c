// Allocators and language runtimes that heaptape recognizes in a process or in a recording.
#pragma once

#include <stdbool.h>

enum software_allocator {
    SOFTWARE_GLIBC,
    SOFTWARE_JEMALLOC,
    SOFTWARE_TCMALLOC,
    SOFTWARE_MIMALLOC,
    SOFTWARE_MUSL,
    SOFTWARE_OTHER_ALLOCATOR,   // defined by the program or another library
    SOFTWARE_UNKNOWN_ALLOCATOR, // the process cannot be read, is static, or has another libc
    SOFTWARE_ALLOCATORS
};

struct software_allocator_info {
    const char *name;
    const char *libraries[2]; // starts of file names, or NULL
    const char *functions[2]; // functions that only this allocator defines
};

extern const struct software_allocator_info software_allocators[SOFTWARE_ALLOCATORS];

// Returns the allocator of a library, and sets *name to the name to print. If the allocator is not
// in the table, *name is the name of the library. `library` may be NULL.
enum software_allocator software_allocator_of(const char *library, const char **name);

// A language runtime whose heap is anonymous memory outside malloc.
struct software_runtime {
    const char *name;
    const char *program; // start of the executable's name
    const char *library; // start of the file name of the runtime's library, or NULL
    bool collects;       // objects are freed only by a garbage collector
    const char *remedy;  // how to examine or limit the heap of the runtime
    // How to get the program's functions into call stacks; NULL if unknown.
    const char *names;
};

enum { SOFTWARE_RUNTIMES = 12 };
extern const struct software_runtime software_runtimes[SOFTWARE_RUNTIMES];

// Returns the runtime of Go, whose executables may have any name.
const struct software_runtime *software_go(void);

// Returns the runtime of an executable, or NULL. `path` may be NULL.
const struct software_runtime *software_runtime_of(const char *path);

// Returns true if a file name begins with the name of the runtime's library.
bool software_is_library(const struct software_runtime *r, const char *path);
