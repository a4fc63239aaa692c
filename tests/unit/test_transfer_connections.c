#include "transfer/connections.h"
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define S 1000000000ull

enum { MANY = 300 };

struct peer {
    int ends[2];
    struct connection *c;
};

static struct connections all;

static int setup(void **state)
{
    (void)state;
    connections_init(&all, 100000);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    connections_release(&all);
    return 0;
}

static void add(struct peer *p, const char *address, uint64_t now_ns)
{
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    bool is_six = inet_pton(AF_INET, address, &four.sin_addr) != 1;
    assert_true(!is_six || inet_pton(AF_INET6, address, &six.sin6_addr) == 1);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, p->ends), 0);
    p->c = connections_add(&all, p->ends[0],
                           is_six ? (struct sockaddr *)&six : (struct sockaddr *)&four, now_ns);
    assert_non_null(p->c);
}

// Returns true if the peer's end of the connection is closed.
static bool is_shut(const struct peer *p)
{
    char byte;
    return read(p->ends[1], &byte, 1) == 0;
}

static void leave(struct peer *p)
{
    connections_remove(&all, p->c);
    close(p->ends[0]);
    close(p->ends[1]);
}

static void test_head(void **state)
{
    struct peer slow, quick;
    (void)state;
    add(&slow, "10.0.0.1", 5 * S);
    add(&quick, "10.0.0.1", 5 * S);
    assert_int_equal(connections_begin_upload(&all, quick.c, 6 * S), 0);
    connections_expire(&all, (5 + CONNECTIONS_HEAD_S) * S - 1);
    assert_false(is_shut(&slow));
    connections_expire(&all, (5 + CONNECTIONS_HEAD_S) * S);
    assert_true(is_shut(&slow));
    assert_false(is_shut(&quick));
    leave(&slow);
    leave(&quick);
}

static void test_upload_times(void **state)
{
    struct peer idle, slow, quick;
    (void)state;
    add(&idle, "10.0.0.1", 0);
    add(&slow, "10.0.0.1", 0);
    add(&quick, "10.0.0.1", 0);
    assert_int_equal(connections_begin_upload(&all, idle.c, 0), 0);
    assert_int_equal(connections_begin_upload(&all, slow.c, 0), 0);
    assert_int_equal(connections_begin_upload(&all, quick.c, 0), 0);
    for (uint64_t t = 10; t < 600; t += 10) {
        connections_progress(&all, slow.c, 10, t * S);
        connections_progress(&all, quick.c, CONNECTIONS_BYTES_PER_S * 10, t * S);
        connections_expire(&all, t * S);
        assert_int_equal(is_shut(&idle), t >= CONNECTIONS_IDLE_S);
        assert_int_equal(is_shut(&slow), t >= CONNECTIONS_IDLE_S);
        assert_false(is_shut(&quick));
    }
    // After the upload has ended, writing to the disk may take longer.
    connections_finish(&all, quick.c);
    connections_expire(&all, 100000 * S);
    assert_false(is_shut(&quick));
    connections_wait(&all, quick.c, CONNECTIONS_IDLE_S, 100000 * S);
    connections_expire(&all, (100000 + CONNECTIONS_IDLE_S) * S);
    assert_true(is_shut(&quick));
    leave(&idle);
    leave(&slow);
    leave(&quick);
}

static void test_waiting_of_address(void **state)
{
    struct peer peers[MANY], other, upload;
    (void)state;
    add(&upload, "10.0.0.1", 0);
    assert_int_equal(connections_begin_upload(&all, upload.c, 0), 0);
    add(&other, "10.0.0.2", 0);
    for (int i = 0; i < MANY; i++)
        add(&peers[i], "10.0.0.1", 0);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(is_shut(&peers[i]), i < MANY - CONNECTIONS_ADDRESS_WAITING);
    assert_false(is_shut(&other));
    assert_false(is_shut(&upload));
    leave(&other);
    leave(&upload);
    for (int i = 0; i < MANY; i++)
        leave(&peers[i]);
}

// Adds connections from different addresses, made of `format` and i * step. Returns the number of
// connections that were shut down.
static int count_shut(const char *format, unsigned step)
{
    struct peer peers[MANY];
    char address[64];
    int n = 0;
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(address, sizeof address, format, i * step);
        add(&peers[i], address, 0);
    }
    for (int i = 0; i < MANY; i++) {
        n += is_shut(&peers[i]);
        // The newest connection must stay open.
        assert_false(i == MANY - 1 && is_shut(&peers[i]));
    }
    for (int i = 0; i < MANY; i++)
        leave(&peers[i]);
    return n;
}

static void test_addresses(void **state)
{
    (void)state;
    assert_int_equal(count_shut("2001:db8:0:%x::1", 1), 0);
    assert_int_equal(count_shut("2001:db8:0:1::%x", 1), MANY - CONNECTIONS_ADDRESS_WAITING);
    assert_int_equal(count_shut("::ffff:10.0.%u.1", 0), MANY - CONNECTIONS_ADDRESS_WAITING);
    // The process has a low limit of open files.
    connections_release(&all);
    connections_init(&all, 2 * CONNECTIONS_UPLOADS + 164);
    assert_int_equal(count_shut("2001:db8:0:%x::1", 1), MANY - 100);
    connections_release(&all);
    connections_init(&all, 0);
    assert_int_equal(count_shut("2001:db8:0:%x::1", 1), MANY - 64);
}

static void test_uploads(void **state)
{
    struct peer peers[MANY];
    char address[32];
    (void)state;
    for (int i = 0; i < MANY; i++) {
        snprintf(address, sizeof address, "10.0.0.%d", i / 100);
        add(&peers[i], address, 0);
        assert_int_equal(connections_begin_upload(&all, peers[i].c, 0),
                         i % 100 < CONNECTIONS_ADDRESS_UPLOADS ? 0 : -EBUSY);
    }
    // A slot is free after an upload has ended.
    connections_wait(&all, peers[0].c, CONNECTIONS_IDLE_S, 0);
    assert_int_equal(connections_begin_upload(&all, peers[99].c, 0), 0);
    assert_int_equal(connections_begin_upload(&all, peers[0].c, 0), -EBUSY);
    for (int i = 0; i < MANY; i++)
        leave(&peers[i]);
    for (int i = 0; i < MANY; i++) {
        snprintf(address, sizeof address, "10.0.1.%d", i / 10);
        add(&peers[i], address, 0);
        assert_int_equal(connections_begin_upload(&all, peers[i].c, 0),
                         i < CONNECTIONS_UPLOADS ? 0 : -EBUSY);
    }
    for (int i = 0; i < MANY; i++)
        leave(&peers[i]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_head, setup, teardown),
    cmocka_unit_test_setup_teardown(test_upload_times, setup, teardown),
    cmocka_unit_test_setup_teardown(test_waiting_of_address, setup, teardown),
    cmocka_unit_test_setup_teardown(test_addresses, setup, teardown),
    cmocka_unit_test_setup_teardown(test_uploads, setup, teardown),
};

UNIT_MAIN(tests)
