// Runs the calls of a test program, immediately or when the test creates the file "go". Includes
// only POSIX headers, because tests compile the programs by hand.
#pragma once

#include <unistd.h>

static inline void when_told_await(const char *path)
{
    while (access(path, F_OK) != 0)
        usleep(1000);
}

// If the program has an argument, runs the calls. Otherwise prints "ready", waits for the file
// "go", runs the calls, prints "done", and waits for the file "end". Returns the exit status.
static inline int when_told(int argc, void (*calls)(void))
{
    if (argc > 1) {
        calls();
        return 0;
    }
    if (write(1, "ready\n", 6) != 6)
        return 1;
    when_told_await("go");
    calls();
    if (write(1, "done\n", 5) != 5)
        return 1;
    when_told_await("end");
    return 0;
}
