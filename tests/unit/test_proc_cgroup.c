#include "base/ring.h"
#include "record/drain/compressors.h"
#include "record/processes/cgroup.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static char root[] = "/tmp/heaptape-cgroup-XXXXXX";
static struct proc_cgroup c;

static void put(const char *folder, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s%s", root, folder);
    for (char *slash = path + strlen(root); (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s%s/%s", root, folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int setup(void **state)
{
    (void)state;
    strcpy(root + sizeof root - 7, "XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

static void test_version_2(void **state)
{
    (void)state;
    put("/a/b", "memory.current", "1000\n");
    put("/a/b", "memory.max", "max\n");
    put("/a", "memory.max", "5000\n");
    proc_cgroup_read("0::/a/b\n", root, root, &c);
    assert_int_equal(c.used, 1000);
    assert_int_equal(c.limit, 5000); // the limit of the parent
    assert_true(c.oom_kills == UINT64_MAX);
    put("/a/b", "memory.events", "low 0\noom 7\noom_kill 3\n");
    put("/a/b", "memory.max", "3000\n");
    proc_cgroup_read("0::/a/b\n", root, root, &c);
    assert_int_equal(c.limit, 3000);
    assert_int_equal(c.oom_kills, 3);
    put("/a/b", "memory.max", "max\n");
    put("/a", "memory.max", "max\n");
    proc_cgroup_read("0::/a/b", root, root, &c);
    assert_int_equal(c.used, 1000);
    assert_true(c.limit == UINT64_MAX);
}

static void test_version_1(void **state)
{
    (void)state;
    put("/memory/a", "memory.usage_in_bytes", "2000\n");
    put("/memory/a", "memory.limit_in_bytes", "9223372036854771712\n");
    put("/memory", "memory.limit_in_bytes", "9223372036854771712\n");
    proc_cgroup_read("5:cpu,cpuacct:/x\n4:memory:/a\n0::/\n", root, root, &c);
    assert_int_equal(c.used, 2000);
    assert_true(c.limit == UINT64_MAX); // no limit
    put("/memory/a", "memory.limit_in_bytes", "7000\n");
    proc_cgroup_read("4:hugetlb,memory:/a\n", root, root, &c);
    assert_int_equal(c.limit, 7000);
}

// The path is relative to the host, but the mounted root is the cgroup of the container.
static void test_container(void **state)
{
    (void)state;
    put("/memory", "memory.usage_in_bytes", "2000\n");
    put("/memory", "memory.limit_in_bytes", "8000\n");
    proc_cgroup_read("4:memory:/docker/0123\n", root, root, &c);
    assert_int_equal(c.used, 2000);
    assert_int_equal(c.limit, 8000);
    put("", "memory.current", "300\n");
    put("", "memory.max", "400\n");
    proc_cgroup_read("0::/docker/0123\n", root, root, &c);
    assert_int_equal(c.used, 300);
    assert_int_equal(c.limit, 400);
}

static void test_none(void **state)
{
    static const char *const lines[] = {"", "\n", "garbage", "4:memory", "0::/a\n", "3:cpu:/a\n"};
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        proc_cgroup_read(lines[i], root, root, &c);
        assert_true(c.used == UINT64_MAX && c.limit == UINT64_MAX);
    }
}

static void test_pressure(void **state)
{
    (void)state;
    put("/a", "memory.current", "1000\n");
    proc_cgroup_read("0::/a\n", root, root, &c);
    assert_true(c.pressure == UINT64_MAX && !c.pressure_of_host);
    put("", "memory",
        "some avg10=1.07 avg60=2.00 avg300=3.00 total=4\n"
        "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
    proc_cgroup_read("0::/a\n", root, root, &c);
    assert_int_equal(c.pressure, 107);
    assert_true(c.pressure_of_host);
    put("/a", "memory.pressure", "some avg10=100.00 avg60=2.00 avg300=3.00 total=4\n");
    proc_cgroup_read("0::/a\n", root, root, &c);
    assert_int_equal(c.pressure, 10000);
    assert_false(c.pressure_of_host);
    put("/a", "memory.pressure", "some avg\n");
    proc_cgroup_read("", root, "/nowhere", &c);
    assert_true(c.pressure == UINT64_MAX && !c.pressure_of_host);
}

static void test_files(void **state)
{
    (void)state;
    put("/a", "memory.current", "1000\n");
    put("/a", "memory.stat", "anon 300\nfile 600\nfile_mapped 50\n");
    proc_cgroup_read_files("0::/a\n", root, &c);
    assert_int_equal(c.files, 600);
    proc_cgroup_read("0::/a\n", root, root, &c);
    assert_int_equal(c.files, 0);
    put("/memory/b", "memory.usage_in_bytes", "2000\n");
    proc_cgroup_read_files("4:memory:/b\n", root, &c);
    assert_true(c.used == 2000 && c.files == UINT64_MAX);
    put("/memory/b", "memory.stat", "cache 70\ntotal_cache 700\n");
    proc_cgroup_read_files("4:memory:/b\n", root, &c);
    assert_int_equal(c.files, 700);
}

static void test_cpus(void **state)
{
    (void)state;
    assert_true(proc_cgroup_cpus("0::/a/b\n", root) == UINT64_MAX);
    put("/a/b", "cpu.max", "max 100000\n");
    assert_true(proc_cgroup_cpus("0::/a/b\n", root) == UINT64_MAX);
    put("/a", "cpu.max", "450000 100000\n");
    assert_int_equal(proc_cgroup_cpus("0::/a/b\n", root), 4); // the quota of the parent
    put("/a/b", "cpu.max", "150000 100000\n");
    assert_int_equal(proc_cgroup_cpus("0::/a/b\n", root), 1);
    put("/a/b", "cpu.max", "20000 100000\n");
    assert_int_equal(proc_cgroup_cpus("0::/a/b\n", root), 1); // at least one CPU
    assert_int_equal(proc_cgroup_cpus("0::/a/without/controller\n", root), 4);
    put("/cpu,cpuacct/c", "cpu.cfs_period_us", "50000\n");
    put("/cpu,cpuacct/c", "cpu.cfs_quota_us", "-1\n");
    assert_true(proc_cgroup_cpus("3:cpuset:/d\n2:cpu,cpuacct:/c\n0::/a\n", root) == UINT64_MAX);
    put("/cpu,cpuacct/c", "cpu.cfs_quota_us", "100000\n");
    assert_int_equal(proc_cgroup_cpus("3:cpuset:/d\n2:cpu,cpuacct:/c\n0::/a\n", root), 2);
    assert_true(proc_cgroup_cpus("3:cpuset:/c\n", root) == UINT64_MAX);
}

// The recorder starts no helpers for CPUs beyond the quota. The path of this process's cgroup does
// not exist below the fake mount point, as in a container.
static void test_spare_cpus(void **state)
{
    (void)state;
    unsigned others = ring_cpus() - 1, most = COMPRESSORS_HELPERS;
    assert_int_equal(compressors_spare_cpus(root), others < most ? others : most);
    put("", "cpu.max", "100000 100000\n");
    put("/cpu", "cpu.cfs_period_us", "100000\n");
    put("/cpu", "cpu.cfs_quota_us", "100000\n");
    assert_int_equal(compressors_spare_cpus(root), 0);
    put("", "cpu.max", "200000 100000\n");
    put("/cpu", "cpu.cfs_quota_us", "200000\n");
    assert_int_equal(compressors_spare_cpus(root), others ? 1 : 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_version_2, setup, teardown),
        cmocka_unit_test_setup_teardown(test_version_1, setup, teardown),
        cmocka_unit_test_setup_teardown(test_container, setup, teardown),
        cmocka_unit_test_setup_teardown(test_none, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pressure, setup, teardown),
        cmocka_unit_test_setup_teardown(test_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cpus, setup, teardown),
        cmocka_unit_test_setup_teardown(test_spare_cpus, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
