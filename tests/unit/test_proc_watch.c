// Tests which process has the next map of pages, and when memory is sampled, with simulated time.
#include "base/clock.h"
#include "record/drain/facts.h"
#include "record/processes/watch.h"
#include "unit.h"

#include <unistd.h>

enum { MAX_PROCESSES = 64 };

#define MS(n) ((n)*1000000ull)

// A map of process i takes cost_ns[i] of CPU time, and wait_ns[i] more. `from_ns` is when the
// process starts.
struct simulation {
    unsigned n;
    uint64_t cost_ns[MAX_PROCESSES], wait_ns[MAX_PROCESSES], from_ns[MAX_PROCESSES];
    bool is_idle[MAX_PROCESSES]; // RSS does not change
    uint64_t words;              // number of words that each process writes between two passes
    // Results.
    unsigned maps[MAX_PROCESSES];
    uint64_t first_map_ns[MAX_PROCESSES], cpu_ns[MAX_PROCESSES];
};

// Runs a recording with a pass over the processes every 10 ms.
static void simulate(struct simulation *s, uint64_t until_ns)
{
    struct proc_turns turns = {0};
    struct proc_due due[MAX_PROCESSES] = {{0}};
    uint64_t end_ns = 0, rss_bytes = 1 << 20;
    const uint64_t start_ns = MS(1000);
    unsigned reading = MAX_PROCESSES;
    for (uint64_t now = start_ns; now < start_ns + until_ns; now += MS(10)) {
        if (reading < s->n && now >= end_ns) {
            due[reading].pause_ns = proc_turns_charge(&turns, now, s->cost_ns[reading],
                                                      s->cost_ns[reading] + s->wait_ns[reading]);
            reading = MAX_PROCESSES;
        }
        rss_bytes *= rss_bytes < 1ull << 40 ? 2 : 1;
        rss_bytes = rss_bytes == 1ull << 40 ? 1 << 20 : rss_bytes;
        for (unsigned i = 0; i < s->n; i++) {
            due[i].words += s->words;
            if (now - start_ns >= s->from_ns[i])
                proc_turns_add(&turns, &due[i], now, i, 1, s->is_idle[i] ? 1 << 20 : rss_bytes);
        }
        if (!proc_turns_end(&turns, now))
            continue;
        reading = turns.number;
        end_ns = now + s->cost_ns[reading] + s->wait_ns[reading];
        s->cpu_ns[reading] += s->cost_ns[reading];
        if (!s->maps[reading]++)
            s->first_map_ns[reading] = now - start_ns;
    }
}

static uint64_t total_cpu_ns(const struct simulation *s)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < s->n; i++)
        sum += s->cpu_ns[i];
    return sum;
}

// One map of the first process costs as much as 100 maps of the second.
static void test_beside_an_expensive_map(void **state)
{
    struct simulation s = {.n = 2, .cost_ns = {MS(100), MS(1)}};
    (void)state;
    simulate(&s, MS(60000));
    assert_in_range(s.maps[0], 2, 4);
    assert_in_range(s.first_map_ns[1], 0, MS(3000));
    assert_in_range(s.maps[1], 60, 250);
    assert_true(total_cpu_ns(&s) <= MS(60000) / 100);
}

// A map that is dropped after its time limit is charged to its process alone.
static void test_beside_a_map_that_fails(void **state)
{
    struct simulation s = {.n = 3, .cost_ns = {MS(250), MS(1), MS(1)}};
    (void)state;
    simulate(&s, MS(30000));
    assert_int_equal(s.maps[0], 1);
    assert_in_range(s.maps[1], 20, 100);
    assert_true(s.maps[1] <= s.maps[2] + 1 && s.maps[2] <= s.maps[1] + 1);
}

static void test_alone(void **state)
{
    struct simulation s = {.n = 1, .cost_ns = {MS(10)}}, idle = {.n = 1, .is_idle = {true}};
    (void)state;
    simulate(&s, MS(20000));
    assert_in_range(s.maps[0], 9, 11); // 10 ms every 2 s
    assert_in_range(s.first_map_ns[0], MS(20), MS(20));
    idle.cost_ns[0] = MS(1) / 100;
    simulate(&idle, MS(10000));
    assert_in_range(idle.maps[0], 40, 50); // every 200 ms
}

// A process whose RSS does not change has maps of 1 ms every 200 ms. After 2 s, it has maps every 2
// s if it writes few words.
static void test_unchanged(void **state)
{
    struct simulation calm = {.n = 1, .cost_ns = {MS(1)}, .is_idle = {true}, .words = 10},
                      busy = calm;
    (void)state;
    simulate(&calm, MS(22000));
    assert_in_range(calm.maps[0], 10 + 9, 10 + 11);
    busy.words = 1000;
    simulate(&busy, MS(22000));
    assert_in_range(busy.maps[0], 100, 110);
}

// Returns the number of samples in 10 s with a pass every 10 ms. The process writes `words` before
// each pass.
static unsigned count_samples(uint64_t words)
{
    struct drain_spool s = {0}; // its CPU time is unknown
    unsigned n = 0;
    for (uint64_t now = MS(1000); now < MS(11000); now += MS(10)) {
        s.words += words;
        n += facts_is_sample_due(&s, now, now, MS(15));
    }
    return n;
}

static void test_samples(void **state)
{
    (void)state;
    assert_int_equal(count_samples(1000), 1000); // each pass
    assert_in_range(count_samples(10), 90, 101); // every 100 ms
    assert_in_range(count_samples(0), 5, 9);     // every second for 4 s, and then less often
}

static void test_samples_by_cpu_time(void **state)
{
    struct drain_spool s = {.visible_pid = getpid()};
    (void)state;
    assert_true(facts_is_sample_due(&s, MS(10000), MS(10000), MS(15)));
    while (facts_cpu_ns(getpid()) - s.sampled_cpu_ns < MS(15))
        continue;
    assert_true(facts_is_sample_due(&s, MS(10500), MS(10500), MS(15)));
    // The process is busy, so the next pass reads its CPU time again.
    assert_true(s.cpu_due_ns <= MS(10500));
}

// On a busy machine, a map of 1 ms takes 400 ms. Pauses of 8 s would leave short recordings with
// one map.
static void test_busy(void **state)
{
    struct simulation s = {.n = 1, .cost_ns = {MS(1)}, .wait_ns = {MS(399)}};
    (void)state;
    simulate(&s, MS(14000));
    assert_in_range(s.maps[0], 10, 11); // each takes 400 ms, with pauses of 1 s
}

static void test_many(void **state)
{
    struct simulation s = {.n = MAX_PROCESSES};
    unsigned fewest = ~0u, most = 0;
    (void)state;
    for (unsigned i = 0; i < s.n; i++)
        s.cost_ns[i] = MS(1);
    simulate(&s, MS(120000));
    for (unsigned i = 0; i < s.n; i++) {
        fewest = s.maps[i] < fewest ? s.maps[i] : fewest;
        most = s.maps[i] > most ? s.maps[i] : most;
    }
    assert_true(fewest > 0 && most <= fewest + 1);
    // At most 0.5 %, and the first map of each process.
    assert_true(total_cpu_ns(&s) <= MS(120000) / 200 + s.n * MS(1));
}

// New processes do not displace a process that has had a map.
static void test_new_processes(void **state)
{
    struct simulation s = {.n = MAX_PROCESSES};
    (void)state;
    for (unsigned i = 0; i < s.n; i++) {
        s.cost_ns[i] = MS(1);
        s.from_ns[i] = i * MS(20);
    }
    simulate(&s, MS(1300));
    assert_true(s.maps[0] >= 1 && s.maps[1] >= 1);
    for (unsigned i = 1; i < s.n; i++)
        assert_true(!s.maps[i] || s.first_map_ns[i] > s.first_map_ns[i - 1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_beside_an_expensive_map),
        cmocka_unit_test(test_beside_a_map_that_fails),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_unchanged),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_samples_by_cpu_time),
        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_new_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
