// Functions and state that the producer's files share, grouped by the file that defines them. Each
// file calls only functions of the files that precede it in this list: state, map, owners,
// recorder, cost, chunk, stream, maps, site (producer_site.h), residency (producer_residency.h),
// freed, pool, exit, follow, refused, alone, process, thread, producer
#pragma once

#include "capture/producer/producer.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 // Linux 5.14
#endif

enum {
    PRODUCER_MAX_THREADS = 65536, // threads live at once; any others are counted as lost
    PRODUCER_POOL_STEP = 256,     // thread states mapped at once
    PRODUCER_MAX_PATH = 4096,
    // Chunks mapped and made accessible at once. mlockall(2) counts the whole mapping towards the
    // program's limit.
    PRODUCER_STEP_CHUNKS = 16,
    PRODUCER_MAX_STEPS = SPOOL_MAX_CHUNKS_ALONE / PRODUCER_STEP_CHUNKS,
};

// mmap(2) and munmap(2) as system calls, because libc's functions are wrapped.
static inline void *producer_mmap(void *at, size_t bytes, int protection, int flags, int fd,
                                  uint64_t offset)
{
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

static inline void producer_munmap(void *at, size_t bytes)
{
    syscall(SYS_munmap, at, bytes);
}

// State of the process image. A fork child starts in state NEW.
enum producer_state {
    PRODUCER_NEW = 0,
    PRODUCER_STARTING = 1,
    PRODUCER_RUNNING = 2,
    PRODUCER_OFF = 3
};

// Data of the process image, in a mapping that is wiped on fork.
struct producer_process {
    _Atomic uint32_t state; // enum producer_state
    uint32_t flags;         // enum spool_session_flags
    bool slow;              // every event goes through the slow path
    bool measures;          // the residency of big blocks is measured
    enum clock_kind clock;
    // pid of the image, set when the image starts. The events of a vfork child are therefore
    // recorded as events of its parent.
    uint32_t pid;
    struct spool_header *header;
    uint32_t max_chunks; // copy of the header's field, which other processes may overwrite
    // Counters of unrecorded calls, or NULL if they are not counted. `counts` is the number of
    // counters, a power of two.
    struct spool_count *_Atomic unrecorded;
    uint32_t counts;
    _Atomic uint32_t open_chunks; // chunks [0, open_chunks) are accessible
    // Number of chunks with allocated pages. In a sandbox, no other chunks may be used. 0 if the
    // process is not in a sandbox.
    _Atomic uint32_t sandboxed;
    // Stack of free thread states. The low 32 bits are the index of the top state plus 1; the high
    // 32 bits are a tag.
    _Alignas(64) _Atomic uint64_t free_thread;
    _Atomic uint32_t fresh_threads; // threads [0, fresh_threads) have been used
    _Atomic uint32_t ending;        // head of the list of ending threads: index plus 1
    _Atomic uint32_t full; // 1 if more thread states could not be mapped, so do not try again
    struct producer_residency_cost residency;
};

// A stream to which a thread of the process writes.
struct producer_writer {
    struct producer_process *p;
    struct producer_thread *t;
    struct producer_stream *stream; // of the thread `t`
};

// State of a thread without a chunk. All events of such a thread take the slow path. Never written
// to.
extern const struct producer_thread producer_no_thread __attribute__((visibility("hidden")));

// Data that a fork child needs from its parent, in ordinary memory, which fork copies.
struct producer_inherited {
    _Atomic(struct producer_process *) process; // a wiped mapping
    // Pool of threads, in wiped mappings. NULL if not mapped.
    _Atomic(struct producer_thread *) pool[PRODUCER_MAX_THREADS / PRODUCER_POOL_STEP];
    char dir[PRODUCER_MAX_PATH]; // session directory, or "" if the environment names none
    bool dir_known;
    char bypassed_by[512];        // object whose malloc the program calls, or ""
    char library[512];            // path of libheaptape.so, or "" if unknown
    const char *heaptape;         // path of heaptape relative to the directory of `library`
    struct spool_stacks stacks;   // from the environment; used in a session without a recorder
    struct spool_session session; // copy; magic is 0 if there is no session
    // Mapping of the session. Unless a sandbox forbids system calls, the mapping is only passed to
    // system calls.
    const struct spool_session *futexes;
    struct spool_reserves *reserves; // mapping, or NULL if the user has no reserves
    uint32_t n_reserves;             // number of reserves that the file has space for
    uint32_t pid;                    // pid of the image that created `spool`
    uint64_t start_stamp;            // start stamp of that image
    uint64_t fork_stamp;             // stamp of that image's last fork, or 0 if it has not forked
    // Mapping of the spool: the header, and the chunks in steps of PRODUCER_STEP_CHUNKS. NULL if
    // not mapped. A fork child drops the mapping.
    struct spool_header *spool;
    _Atomic(struct spool_chunk *) steps[PRODUCER_MAX_STEPS];
    // In a fork child, the address of the parent's spool (header and first step), which stays
    // mapped until the child's spool replaces it. Otherwise NULL.
    char *place;
    bool forked;   // forked by a process that had, or may have had, several threads
    bool filtered; // system calls are filtered: make none, and do not record fork children
    bool foreign;  // another C library may create threads
    bool sandbox;  // the program is setting up a sandbox, so measure nothing from now on
    char name[16]; // if `sandbox` is set, the name of the thread that set up the sandbox
    bool attached; // heaptape attached to the running program, or to an ancestor that forked it
    uint32_t recording;   // enum spool_recording: initial state of new spools
    uint32_t generations; // the highest value of unwind_generation so far
    char allocator[512];
    uint32_t end_key; // pthread_key_t, if end_key_made
    uint32_t end_key_made;
    struct producer_sites *sites; // NULL if call sites are not recorded
    // Set of freed addresses, in a wiped mapping (producer_freed.c). While it is NULL, the set is
    // empty and additions are ignored.
    _Atomic(_Atomic uint64_t *) freed;
};
extern struct producer_inherited producer_inherited __attribute__((visibility("hidden")));

// Returns the process image, or NULL before the first event.
static inline struct producer_process *producer_current(void)
{
    return atomic_load_explicit(&producer_inherited.process, memory_order_acquire);
}

// Returns false if `p` is NULL.
static inline bool producer_has_state(const struct producer_process *p, enum producer_state state)
{
    return p && atomic_load_explicit(&p->state, memory_order_acquire) == (uint32_t)state;
}

// Returns the number of chunks that a sandboxed process may use, or 0 outside a sandbox.
static inline uint32_t producer_sandbox_chunks(const struct producer_process *p)
{
    return atomic_load_explicit(&p->sandboxed, memory_order_relaxed);
}

// producer_state.c

// producer_signals_block blocks all signals and returns the previous mask for
// producer_signals_restore. Both functions use the system call, because pthread_sigmask leaves the
// C library's internal signals unblocked.
uint64_t producer_signals_block(void);
void producer_signals_restore(uint64_t mask);

// Return the kernel's ID of the calling thread, and the pid. Make no system call behind a filter.
// There, only the first thread of a forked child may call producer_process_id.
uint32_t producer_thread_id(void);
uint32_t producer_process_id(void);

// Allows the calling thread to record events without reading the counter. Call at the start of
// stream 0. `first` is true for the first thread of the process.
void producer_begin_sparse(struct producer_process *p, struct producer_stream *stream, bool first);

// Requests a reading of the counter at the next event of the stream.
static inline void producer_request_reading(struct producer_stream *stream)
{
    stream->sequence = PRODUCER_NO_SEQUENCE;
}

// Like producer_request_reading, for all threads of the process. The next event of a thread that
// sees the request gets a later stamp than all stamps before this call.
static inline void producer_request_readings(struct spool_header *h)
{
    atomic_fetch_add(&h->readings.sequence, SPOOL_READ_STEP);
}

// producer_owners.c

// Makes the calling thread the owner of an address, after it has read the counter for an event at
// that address. `size` is as in producer_ticks. Does nothing for address 0, or if the process has a
// single thread. Preserves errno.
void producer_own(uint64_t address, uint64_t size);

// Sets producer_tls.owner. `sequence` is the value of readings->sequence.
void producer_set_owner(const struct producer_thread *t, uint32_t sequence);

// Maps memory for units that are needed after the program has filtered its system calls.
void producer_owners_sandbox(void);

// Returns the distance from the unit of address 0 to the region's units.
static inline uintptr_t producer_units_before(uint64_t region)
{
    return region << (PRODUCER_REGION_SHIFT - PRODUCER_UNIT_SHIFT);
}

// Returns the address of the region's first unit, or 0 if the region has no units.
static inline uintptr_t producer_region_start(const struct producer_region *r)
{
    uint64_t number = atomic_load_explicit(&r->number, memory_order_acquire);
    return number ? (uintptr_t)atomic_load_explicit(&r->units, memory_order_relaxed) +
                        producer_units_before(number - 1)
                  : 0;
}

// Frees the units. No other thread may be inside the library.
void producer_owners_stop(void);

// Like snprintf, but ignores the locale and does not allocate. Supports only %s and %u. Returns
// false if the text did not fit and was truncated.
bool producer_format(char *to, size_t room, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Returns the value of an environment entry NAME=VALUE, or NULL if the entry has another name.
const char *producer_env_value(const char *entry, const char *name);

// Returns the environment, or NULL if it is not known yet (producer_set_environment).
char **producer_environment(void);

// producer_map.c

// Returns true if the program's resource limits do not permit mapping `bytes` for an optional part
// of the recording.
bool producer_memory_is_scarce(size_t bytes);

// Maps zeroed memory for the recording. Returns NULL if out of memory.
void *producer_map_private(size_t bytes);
void producer_unmap_private(void *at, size_t bytes);

// Returns the resident bytes of all private mappings and of the library's variables, or 0 if
// unknown.
uint64_t producer_private_bytes(void);

// Maps zeroed memory and stores its address in *to, unless *to is already set. The memory is zero
// again in a fork child. Returns NULL if out of memory, or before Linux 4.14.
void *producer_map_wiped(void *_Atomic *to, size_t bytes);

// Maps zeroed memory for units, which is zero again in a fork child. Returns NULL if out of memory,
// or before Linux 4.14. Unmap the memory with producer_munmap.
void *producer_map_units(size_t bytes);

// Maps the header and the first chunks of the file, and makes `open_chunks` chunks accessible. The
// file must have space for the chunks. Returns NULL on failure.
struct spool_header *producer_map_first(struct producer_inherited *in, int fd,
                                        uint32_t open_chunks);

// Like producer_map_first, but maps the header and the first chunks of a reserve spool, which has
// no file. All these chunks are accessible.
struct spool_header *producer_map_reserve(struct producer_inherited *in, unsigned slot);

// producer_map_release resets the spool but keeps its address range until producer_map_first reuses
// it or producer_map_unreserve frees it. producer_map_forget resets the spool and leaves it mapped.
void producer_map_release(struct producer_inherited *in);
void producer_map_unreserve(struct producer_inherited *in);
void producer_map_forget(struct producer_inherited *in);

// Maps chunk `index` and all chunks before it, but does not make them accessible. Returns NULL if
// there is no address space.
struct spool_chunk *producer_map_chunk(struct producer_inherited *in, uint32_t index);

// Returns a chunk, which must be mapped.
static inline struct spool_chunk *producer_chunk_at(struct producer_inherited *in, uint32_t index)
{
    struct spool_chunk *step =
        atomic_load_explicit(&in->steps[index / PRODUCER_STEP_CHUNKS], memory_order_acquire);
    return step + index % PRODUCER_STEP_CHUNKS;
}

// producer_recorder.c

// Wakes the recorder, which then examines the spool.
void producer_wake_recorder(struct producer_process *p);

// Returns true if a live recorder will drain the words that are written after this call.
bool producer_has_recorder(const struct producer_process *p);

// Ends the waits of producer_chunk_acquire. Call after the process's state has become PRODUCER_OFF.
void producer_end_waits(struct producer_process *p);

// Turns tracing off for this process image. If there is a spool, stores `reason` in its header.
void producer_process_off(struct producer_process *p, const char *reason);

// producer_cost.c

// Counts an event that does not use the fast path. If the result is true, measure the event's cost
// in ticks and pass the cost to producer_cost_add.
static inline bool producer_cost_is_due(struct producer_thread *t)
{
    return producer_unlikely(++t->slow_events % SPOOL_COST_EVENTS == 0);
}

void producer_cost_add(struct spool_header *h, uint64_t ticks);

// Sets fast_ticks and unread_ticks of the header. Call with signals blocked.
void producer_cost_measure(struct spool_header *h, enum clock_kind clock);

// producer_chunk.c

// Returns a chunk without an owner. Unless the session is lossy, waits for the recorder, and adds
// the time waited to *waited_ns. Returns NULL if a lossy session has no free chunk, or if tracing
// turned itself off.
struct spool_chunk *producer_chunk_acquire(struct producer_process *p, uint64_t *waited_ns);

// If `end` is in a piece without pages, allocates the chunk's pages up to `end`. Returns false if
// out of memory.
bool producer_chunk_populate(struct producer_process *p, struct spool_chunk *chunk, uintptr_t end);

// Hands a chunk to the recorder.
void producer_chunk_done(struct producer_process *p, struct spool_chunk *chunk);

// producer_stream.c

// Returns the ticks of about 8 us. If two consecutive readings of the counter are at least this far
// apart, the events between them count as early.
uint64_t producer_usual_ticks(void);

// Stamps an event and writes it to a stream. Call only while no other record is being written to
// the stream.
void producer_stream_put(const struct producer_writer *w, const struct event *ev);

// Hands the chunk of the stream to the recorder.
void producer_stream_close(struct producer_process *p, struct producer_stream *stream);

// Forces the stream's later events onto the slow path, which keeps last_stamp up to date.
void producer_stream_force_slow(struct producer_process *p, struct producer_stream *stream);

// Writes THREAD_END, with the stamp of the stream's last event.
void producer_stream_end(const struct producer_writer *w);

// Counts a call that is not recorded.
void producer_count_unrecorded(const struct producer_process *p, const struct event *ev);

// producer_freed.c

enum {
    PRODUCER_FREED_INDEX_BITS = 20,
    PRODUCER_FREED_ENTRIES = 1 << PRODUCER_FREED_INDEX_BITS,
    PRODUCER_FREED_PLACES = 32, // addresses in an entry
    PRODUCER_FREED_GENERATION_BITS = 12,
};

// The set of addresses at which a block was freed since heaptape attached to the process. A block
// that is live at such an address was allocated after that free, so its allocation is in the trace.
// Some added addresses may be missing from the set, but the set contains no other addresses. The
// set is empty after the recording was paused, resumed or reset, and in a fork child.

// Makes the set usable, unless memory is scarce.
void producer_freed_start(void);
void producer_freed_stop(void);

// Adds an address at which a block is freed. Call before the real function.
void producer_freed_add(const struct spool_header *h, uint64_t address);

// Removes the address of a block whose allocation is not recorded. Call before the program gets the
// block.
void producer_freed_remove(const struct spool_header *h, uint64_t address);

bool producer_freed_has(const struct spool_header *h, uint64_t address);

// producer_pool.c

// Returns the state of a thread, which must be mapped.
static inline struct producer_thread *producer_thread_at(uint32_t index)
{
    _Atomic(struct producer_thread *) *step = &producer_inherited.pool[index / PRODUCER_POOL_STEP];
    return atomic_load_explicit(step, memory_order_acquire) + index % PRODUCER_POOL_STEP;
}

// producer_thread_alloc allocates a thread state from the pool. producer_thread_release returns the
// state.
struct producer_thread *producer_thread_alloc(struct producer_process *p);
void producer_thread_release(struct producer_process *p, struct producer_thread *t);

// Returns true if all thread states are in use. A new thread then gets no state: its events are
// lost, and it makes no system calls.
bool producer_thread_pool_is_full(const struct producer_process *p);

// Returns true if a thread was created with the start function of this library but has not run yet.
bool producer_thread_any_unstarted(const struct producer_process *p);

// Drops the states of all threads and their caches for stack walks. Does not unmap the first
// states, because they share a mapping with the process.
void producer_thread_drop_all(struct producer_process *p);

// producer_exit.c

// Creates the key whose destructor detects thread exits. Runs once for a process and its fork
// children.
void producer_thread_make_key(void);

// Makes sure that the key's destructor runs when the calling thread exits.
void producer_thread_arm_key(void);

// Adds the thread to the list of ending threads, unless it is already listed.
void producer_thread_list(struct producer_process *p, struct producer_thread *t);

// Returns true if the calling thread has returned its state because it is about to exit.
bool producer_thread_has_finished(void);

// Records the exit of listed threads that no longer exist, and returns their states to the pool.
// Does nothing if system calls are filtered.
void producer_thread_reap(struct producer_process *p);

// producer_follow.c

// Returns true if the session records this process.
bool producer_is_followed(const struct spool_session *session);

// producer_refused.c

// Unless `shared` is NULL, counts this process as unrecorded in its user's reserves. If the process
// is among the first SPOOL_UNTRACED, also stores `why` (enum spool_refusal) and counts the
// process's calls from then on. Always returns false.
bool producer_count_refused(struct producer_process *p, struct spool_reserves *shared,
                            uint32_t why);

// producer_alone.c

// If the environment requests a recorder and names no session, starts a recorder. Waits until the
// recorder has created the session, then sets in->dir. If nothing is recorded, prints the reason
// and returns false.
bool producer_alone_start(struct producer_inherited *in);

// producer_process.c

// Returns the process in state RUNNING, or NULL if tracing is off. Starts the process if it was
// NEW. Call with signals blocked.
struct producer_process *producer_process_ready(void);

// Reads up to `room` bytes of a file in /proc/self with a single read(2). Returns the number of
// bytes, or 0 after any error.
size_t producer_read_file(const char *path, char *to, size_t room);

// producer_thread.c

// Returns the state of the calling thread, ready to record. Writes THREAD_START if the thread is
// new. Returns NULL if tracing is off.
struct producer_thread *producer_thread_ready(struct producer_process *p);
