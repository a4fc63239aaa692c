// Shared by the files of the producer.
#ifndef HEAPTAPE_CAPTURE_PRODUCER_PRIVATE_H
#define HEAPTAPE_CAPTURE_PRODUCER_PRIVATE_H

#include "capture/producer/producer.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 // Linux 5.14
#endif

enum {
    PRODUCER_MAX_THREADS = 65536, // live at once; those above are counted as lost
    PRODUCER_POOL_STEP = 256,     // states of threads mapped at once
    PRODUCER_MAX_PATH = 4096,
    PRODUCER_STEP_CHUNKS = SPOOL_RESERVE_CHUNKS, // mapped at once: for some 20 threads
    PRODUCER_OPEN_CHUNKS = 16,                   // made accessible at once
    PRODUCER_MAX_STEPS = SPOOL_MAX_CHUNKS_ALONE / PRODUCER_STEP_CHUNKS,
};

// mmap(2) and its like by the system call: those of libc are wrapped.
static inline void *producer_mmap(void *at, size_t bytes, int protection, int flags, int fd,
                                  uint64_t offset)
{
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

static inline void producer_munmap(void *at, size_t bytes)
{
    syscall(SYS_munmap, at, bytes);
}

// Zero in a new process image, and again in a fork child.
enum producer_state {
    PRODUCER_NEW = 0,
    PRODUCER_STARTING = 1,
    PRODUCER_RUNNING = 2,
    PRODUCER_OFF = 3
};

// Of the process image; lies in a wiped mapping.
struct producer_process {
    _Atomic uint32_t state; // enum producer_state
    uint32_t flags;         // enum spool_session_flags
    bool slow;              // every event takes the slow path
    bool measures;          // how much is used of big blocks
    enum clock_kind clock;
    uint32_t
        pid; // who the image is: known from its start, or a vfork child's events would be its own
    struct spool_header *header;
    uint32_t max_chunks; // as in the header, which others may overwrite
    struct spool_count *
        unrecorded; // calls that are not: `counts` of them, a power of two. NULL: nobody wants to know
    uint32_t counts;
    _Atomic uint32_t open_chunks; // chunks [0, open_chunks) are accessible
    _Atomic uint32_t
        sandboxed; // chunks that have their memory; all that may be used. 0: not in a sandbox
    _Alignas(64) _Atomic uint64_t
        free_thread; // stack of ended threads: low 32 bits index + 1, high 32 bits a tag
    _Atomic uint32_t fresh_threads; // threads [0, fresh_threads) have been in use
    _Atomic uint32_t ending;        // list of ending threads: index + 1
    _Atomic uint32_t
        full; // 1: no memory was left for the states of more threads, and is not asked for again
    struct producer_residency_cost residency;
};

// A thread without room: every event of it takes the slow path. Never written to, since there is no room.
extern const struct producer_thread producer_no_thread __attribute__((visibility("hidden")));

// What a fork child needs to know of its parent, and so lies in ordinary memory.
struct producer_inherited {
    _Atomic(struct producer_process *) process; // a wiped mapping
    // The pool of threads, wiped, too. NULL: not mapped yet.
    _Atomic(struct producer_thread *) pool[PRODUCER_MAX_THREADS / PRODUCER_POOL_STEP];
    char dir[PRODUCER_MAX_PATH]; // of the session; "" when none was named
    bool dir_known;
    char bypassed_by[512];        // "": by nothing
    char library[512];            // path of libheaptape.so; "" where it is not known yet
    const char *heaptape;         // from its folder
    struct spool_stacks stacks;   // that a session without a recorder asks for
    struct spool_session session; // a copy; magic 0: there is none
    const struct spool_session
        *futexes; // the session, mapped: for system calls, unless these are not to be made
    struct spool_reserves *reserves; // mapped; NULL: this user has none
    uint32_t n_reserves;             // that the file has room for
    uint32_t pid;                    // of the image that made `spool`
    uint64_t start_stamp;            // of the same
    uint64_t fork_stamp;             // of its last fork; 0: there was none
    // Its mapping, to be dropped by a fork child: the header, and the chunks in steps of PRODUCER_STEP_CHUNKS. NULL: not
    // mapped yet.
    struct spool_header *spool;
    _Atomic(struct spool_chunk *) steps[PRODUCER_MAX_STEPS];
    char *
        place; // where a parent's spool is still mapped, for that of the child: header and first step; or NULL
    bool forked;   // by a process that had, or may have had, several threads
    bool filtered; // system calls are: a fork child cannot begin a recording
    bool sandbox;  // the program has begun to build one: nothing is measured any more
    bool attached; // heaptape came when the program, or one that it was forked from, ran already
    uint32_t recording; // enum spool_recording: what a spool begins with
    char allocator[512];
    uint32_t end_key; // pthread_key_t, when end_key_made
    uint32_t end_key_made;
    struct producer_sites *sites; // NULL: call sites are not recorded
};
extern struct producer_inherited producer_inherited __attribute__((visibility("hidden")));

// Is this process to be recorded, as the session says?
bool producer_is_followed(const struct spool_session *session);

// Starts a recorder, if the environment asks for one and names no session; waits until it has made the session, whose
// directory is in->dir then. False: nothing is to be recorded, and why has been printed.
bool producer_alone_start(struct producer_inherited *in);

// Is there a recorder that will drain what is written from now on?
bool producer_has_recorder(const struct producer_process *p);

// Does the whole text match a pattern of *, ? and [sets]?
bool producer_glob(const char *pattern, const char *text);

// Maps header and first chunks of the file, of which `open_chunks` are accessible. NULL on failure. The file must have room
// for these.
struct spool_header *producer_map_first(struct producer_inherited *in, int fd,
                                        uint32_t open_chunks);

// The same for a reserve of the user's, which needs nothing but memory; PRODUCER_OPEN_CHUNKS are accessible.
struct spool_header *producer_map_reserve(struct producer_inherited *in, unsigned slot);

// Forgets the spool, and keeps its place for the next producer_map_first, or until producer_unmap_left. Or forgets that it is
// mapped.
void producer_leave_map(struct producer_inherited *in);
void producer_unmap_left(struct producer_inherited *in);
void producer_forget_map(struct producer_inherited *in);

// Maps chunk `index` and all before it, not yet accessible. NULL: there is no address space.
struct spool_chunk *producer_map_chunk(struct producer_inherited *in, uint32_t index);

// State of a thread, that is mapped.
static inline struct producer_thread *producer_thread_at(uint32_t index)
{
    _Atomic(struct producer_thread *) *step = &producer_inherited.pool[index / PRODUCER_POOL_STEP];
    return atomic_load_explicit(step, memory_order_acquire) + index % PRODUCER_POOL_STEP;
}

// Makes the mapping at *to, zero also in a fork child, unless there is one already. NULL: no memory, or a kernel before
// 4.14.
void *producer_map_wiped(void *_Atomic *to, size_t bytes);

// A chunk that is mapped.
static inline struct spool_chunk *producer_chunk_at(struct producer_inherited *in, uint32_t index)
{
    struct spool_chunk *step =
        atomic_load_explicit(&in->steps[index / PRODUCER_STEP_CHUNKS], memory_order_acquire);
    return step + index % PRODUCER_STEP_CHUNKS;
}

// The process, RUNNING; makes it so if it is NEW. NULL when tracing is off. Call with signals blocked.
struct producer_process *producer_process_ready(void);

// Counts the process, which is not recorded, beside its user's reserves, and for the first of such processes `why` (enum
// spool_refusal): their calls are counted from then on. Returns false. `shared` may be NULL.
bool producer_refuse(struct producer_process *p, struct spool_reserves *shared, uint32_t why);

// Turns tracing off for this process image; `reason` goes into the spool's header, if there is one.
void producer_process_off(struct producer_process *p, const char *reason);

// A chunk that nobody owns. Waits for the recorder, unless the session is lossy; adds the time to *waited_ns. NULL:
// none (lossy), or tracing has turned itself off.
struct spool_chunk *producer_chunk_take(struct producer_process *p, uint64_t *waited_ns);

// Gives the chunk its memory up to `end`, if that lies in another piece. False: there is none to be had.
bool producer_chunk_ready(struct producer_process *p, struct spool_chunk *chunk, uintptr_t end);

// Opens as many chunks as the threads may use, and no others from then on.
void producer_chunks_fetch(struct producer_process *p);

// Tells the recorder that there is something to look at.
void producer_wake_recorder(struct producer_process *p);

// Is this event, which does not take the fast path, one of those whose cost is measured? Then producer_cost_add.
static inline bool producer_cost_is_due(struct producer_thread *t)
{
    return producer_unlikely(++t->slow_events % SPOOL_COST_EVENTS == 0);
}

void producer_cost_add(struct spool_header *h, uint64_t ticks);

// Ticks that SPOOL_FAST_EVENTS events take on the fast path. Call with signals blocked.
uint64_t producer_cost_measure(enum clock_kind clock);

// CPU time of the process in ns, 0 where it is not known. A system call.
uint64_t producer_cpu_ns(void);

// Reads up to `room` bytes of a file of /proc/self, which the kernel hands over at once. Returns how many, 0 on any trouble.
size_t producer_read_file(const char *path, char *to, size_t room);

// Hands a chunk to the recorder.
void producer_chunk_done(struct producer_process *p, struct spool_chunk *chunk);

// The calling thread's state, ready to record, after THREAD_START if it is new. NULL when tracing is off.
struct producer_thread *producer_thread_ready(struct producer_process *p);

// Makes the key whose destructor ends threads; once for a process and its fork children.
void producer_thread_make_key(void);

// Takes or gives back a thread of the pool.
struct producer_thread *producer_thread_take(struct producer_process *p);
void producer_thread_give(struct producer_process *p, struct producer_thread *t);

// Records the ends of ending threads that are no more, and gives their state back to the pool.
void producer_thread_reap(struct producer_process *p);

// Is there a thread that was made to begin in this library, and has not read yet with what?
bool producer_thread_has_unborn(const struct producer_process *p);

// Forgets the states of all threads, and what each has for its walks. The first of them lie beside the process's.
void producer_thread_drop_all(struct producer_process *p);

// Writes one event into a stream that nothing else is writing to; stamps it.
void producer_stream_put(struct producer_process *p, struct producer_thread *t,
                         struct producer_stream *stream, const struct event *ev);
void producer_stream_close(struct producer_process *p, struct producer_stream *stream);

// Makes every later event of the stream take the slow path, which keeps last_stamp up to date from now on.
void producer_stream_slow(struct producer_process *p, struct producer_stream *stream);

// Writes THREAD_END, with the stamp of the stream's last event.
void producer_stream_end(struct producer_process *p, struct producer_thread *t,
                         struct producer_stream *stream);

// All signals blocked, by the system call: pthread_sigmask leaves the C library's own signals open.
uint64_t producer_signals_block(void);
void producer_signals_restore(uint64_t mask);

#endif
