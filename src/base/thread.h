// Starts helper threads, and waits for conditions with a timeout.
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

// Starts a thread that calls run(arg), and waits until the thread is running, so that the process
// can then fork safely. While a thread starts, AddressSanitizer holds one of its allocator's locks,
// and a child forked at that time could never acquire it. The thread blocks all signals except
// SIGBUS. If stack_bytes is 0, the stack has the default size, which is the limit of the main
// thread's stack, but at least 1 MiB. Returns 0, or a negative errno if no thread was started.
int thread_start(pthread_t *thread, size_t stack_bytes, void *(*run)(void *), void *arg);

// Waits until the condition is signaled or `ns` nanoseconds have passed. Call with the mutex held.
void thread_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t ns);
