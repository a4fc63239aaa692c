#include "base/ring.h"

#include "unit.h"

enum { PLACES = 3, NUMBERS = 20000 };

struct line {
    struct ring ring;
    unsigned places[PLACES];
    unsigned until;         // numbers to produce
    unsigned taken, refuse; // number of consumed values; the value at which the consumer stops
};

static void *fill(void *of)
{
    struct line *l = of;
    int at;
    for (unsigned i = 0; i < l->until && (at = ring_wait_empty(&l->ring)) >= 0; i++) {
        l->places[at] = i;
        ring_fill(&l->ring);
    }
    ring_over(&l->ring);
    return NULL;
}

static void empty(struct line *l)
{
    int at;
    while ((at = ring_wait_full(&l->ring)) >= 0) {
        assert_int_equal(l->places[at], l->taken);
        if (++l->taken == l->refuse)
            break;
        ring_empty(&l->ring);
    }
    ring_stop(&l->ring);
}

static struct line run(unsigned until, unsigned refuse)
{
    struct line l = {.until = until, .refuse = refuse};
    pthread_t thread;
    ring_init(&l.ring, PLACES);
    assert_int_equal(pthread_create(&thread, NULL, fill, &l), 0);
    empty(&l);
    // Neither side blocks forever, whichever stops first.
    assert_int_equal(pthread_join(thread, NULL), 0);
    ring_release(&l.ring);
    return l;
}

static void all_comes_in_order(void **state)
{
    assert_int_equal(run(NUMBERS, 0).taken, NUMBERS);
    assert_int_equal(run(0, 0).taken, 0);
    (void)state;
}

static void who_stops_sets_the_other_free(void **state)
{
    for (unsigned refuse = 1; refuse < 2 * PLACES; refuse++)
        assert_int_equal(run(NUMBERS, refuse).taken, refuse);
    (void)state;
}

static void drained_when_all_is_consumed(void **state)
{
    struct ring r;
    ring_init(&r, PLACES);
    ring_drain(&r);
    assert_int_equal(ring_wait_empty(&r), 0);
    ring_fill(&r);
    assert_int_equal(ring_wait_empty(&r), 1);
    assert_int_equal(ring_wait_full(&r), 0);
    ring_empty(&r);
    ring_drain(&r);
    ring_over(&r);
    assert_int_equal(ring_wait_full(&r), -1);
    ring_stop(&r);
    assert_int_equal(ring_wait_empty(&r), -1);
    ring_release(&r);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_comes_in_order),
        cmocka_unit_test(who_stops_sets_the_other_free),
        cmocka_unit_test(drained_when_all_is_consumed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
