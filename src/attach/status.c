#include "attach/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Copies the text of the field: "" where there is none.
static void read_field(pid_t pid, pid_t tid, const char *field, char *to, size_t room)
{
    char path[64], *line = NULL;
    size_t capacity = 0, n = strlen(field);
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/status", (long)pid, (long)tid);
    FILE *f = fopen(path, "re");
    to[0] = 0;
    while (f && !to[0] && getline(&line, &capacity, f) > 0) {
        if (strncmp(line, field, n) == 0 && line[n] == ':')
            snprintf(to, room, "%s", line + n + 1 + strspn(line + n + 1, "\t "));
    }
    free(line);
    if (f)
        fclose(f);
}

uint64_t status_number(pid_t pid, pid_t tid, const char *field, int base)
{
    char text[32];
    read_field(pid, tid, field, text, sizeof text);
    return strtoull(text, NULL, base);
}

char status_letter(pid_t pid, pid_t tid, const char *field)
{
    char text[2];
    read_field(pid, tid, field, text, sizeof text);
    return text[0];
}
