#include "replay/machine.h"

#include "base/build_id.h"
#include "base/fio.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static void read_text(const char *path, char *text, size_t size)
{
    ssize_t n = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, text, size - 1);
        close(fd);
    }
    text[n > 0 ? n : 0] = 0;
    text[strcspn(text, "\n")] = 0;
}

// Reads the line "model name : X", which exists only on x86.
static void find_cpu_model(char *model, size_t size)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f && !model[0] && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", strlen("model name")) == 0 && colon)
            snprintf(model, size, "%s", colon + 1 + strspn(colon + 1, " "));
    }
    model[strcspn(model, "\n")] = 0;
    if (f)
        fclose(f);
}

static void find_cpus(struct machine *m)
{
    cpu_set_t set;
    size_t n = 0;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    m->online_cpus = online > 0 ? (uint64_t)online : 0;
    m->cores = m->online_cpus;
    if (sched_getaffinity(0, sizeof set, &set) < 0)
        return;
    m->cores = (uint64_t)CPU_COUNT(&set);
    for (unsigned i = 0; i < CPU_SETSIZE && n < sizeof m->cpus; i++) {
        unsigned from = i;
        while (i < CPU_SETSIZE && CPU_ISSET(i, &set))
            i++;
        if (i > from)
            n += (size_t)snprintf(m->cpus + n, sizeof m->cpus - n,
                                  i > from + 1 ? "%s%u-%u" : "%s%u", n ? "," : "", from, i - 1);
    }
    // If the list does not fit, drop it, because a truncated list would be misleading.
    if (n >= sizeof m->cpus)
        m->cpus[0] = 0;
}

// Reads one of two files, depending on the driver. In the second file, 0 means enabled.
static int find_boost(void)
{
    char text[8];
    read_text("/sys/devices/system/cpu/cpufreq/boost", text, sizeof text);
    if (text[0])
        return text[0] == '1';
    read_text("/sys/devices/system/cpu/intel_pstate/no_turbo", text, sizeof text);
    return text[0] ? text[0] == '0' : -1;
}

// Finds the current setting, which is in brackets.
static void find_hugepages(char *setting, size_t size)
{
    char text[128];
    read_text("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof text);
    const char *from = strchr(text, '['), *to = from ? strchr(from, ']') : NULL;
    if (to)
        snprintf(setting, size, "%.*s", (int)(to - from - 1), from + 1);
}

void machine_read(struct machine *m)
{
    struct utsname name;
    *m = (struct machine){.boost = find_boost()};
    find_cpus(m);
    if (uname(&name) == 0) {
        snprintf(m->architecture, sizeof m->architecture, "%s", name.machine);
        snprintf(m->kernel, sizeof m->kernel, "%s", name.release);
    }
    find_cpu_model(m->cpu_model, sizeof m->cpu_model);
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    m->page_bytes = page_bytes > 0 ? (uint64_t)page_bytes : 0;
    m->memory_bytes = pages > 0 ? (uint64_t)pages * m->page_bytes : 0;
    if (getloadavg(&m->load, 1) != 1)
        m->load = -1;
    read_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", m->governor,
              sizeof m->governor);
    find_hugepages(m->transparent_hugepages, sizeof m->transparent_hugepages);
}

void machine_build_id(const char *path, char *text, size_t size)
{
    struct stat st;
    int fd = input_regular_fd(path, &st);
    char *found = fd >= 0 ? build_id_at(fd, 0) : NULL;
    snprintf(text, size, "%s", found ? found : "");
    free(found);
    if (fd >= 0)
        close(fd);
}
