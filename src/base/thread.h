// Helper threads: start, and wait for a limited time.
#ifndef HEAPTAPE_BASE_THREAD_H
#define HEAPTAPE_BASE_THREAD_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

// Starts a thread that calls run(arg), and returns when the thread runs. A process may fork soon
// after that: while a thread starts, AddressSanitizer holds a lock of its allocator, and in a child
// this lock would stay locked. All signals but SIGBUS are blocked in the thread. With stack_bytes
// 0, the stack has the default size. Returns 0, or a negative errno without a thread.
int thread_start(pthread_t *thread, size_t stack_bytes, void *(*run)(void *), void *arg);

// Waits for a signal of the condition, or for this time. Call with the mutex held.
void thread_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t ns);

#endif
