// How libheaptape.so is used by `heaptape record --pid`, which loads it into a process that runs already and has a thread of that
// process call what is exported for it (src/capture/patch.c):
//
//     int heaptape_attach(const char *session_dir)
// begins the recording of the process in the session of the directory. 0 or an errno; then nothing has changed.
//     int heaptape_detach(void)
// ends it: calls that begin from then on go past the library, whose functions some threads may still be in. 0, or ENOTSUP: the
// program was started with the library.
//     int heaptape_clear(void)
// after that, while all other threads are stopped and none of them is writing, gives back all that the recording had. 0, or
// EAGAIN: later. Afterwards `state` of all threads must be made that of the calling one.
//     const struct spool_thread *heaptape_thread(void)
// returns the calling thread's.
//     int heaptape_list(const struct spool_block *blocks, size_t n)
// records blocks that are live, while all other threads are stopped and none of them is in a wrapper. 0, or EAGAIN: there is no
// recording.
#ifndef HEAPTAPE_SPOOL_ATTACH_H
#define HEAPTAPE_SPOOL_ATTACH_H

#include <stddef.h>
#include <stdint.h>

// The library is loaded into a process that runs by a descriptor, so that the file need not be in the process's file system; where
// that is forbidden, from a file of this name in the session's directory. By its path it knows how it came.
#define SPOOL_ATTACHED_FD   "/proc/self/fd/"
#define SPOOL_ATTACHED_FILE "libheaptape-attached.so"

struct spool_block {
    uint64_t address, size;
};

// Of a thread, at the same distance from its thread pointer in all threads.
struct spool_thread {
    void *state;
    uint32_t busy; // SPOOL_THREAD_WRITING: it is in the middle of a record
};
enum { SPOOL_THREAD_WRITING = 1 };

#endif
