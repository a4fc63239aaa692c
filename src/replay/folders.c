#include "replay/folders.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_INCLUDES = 4 }; // of files of folders in each other

static int try_folder(const char *folder, const char *file, char **path)
{
    char text[PATH_MAX];
    if (folder[0] != '/' || snprintf(text, sizeof text, "%s/%s", folder, file) >= (int)sizeof text)
        return -ENOENT;
    if (access(text, R_OK) < 0)
        return -ENOENT;
    *path = realpath(text, NULL);
    return *path ? 0 : -ENOENT;
}

static int try_list(const char *list, const char *file, char **path)
{
    int rc = -ENOENT;
    char *copy = strdup(list), *rest = copy, *folder;
    if (!copy)
        return -ENOMEM;
    while (rc == -ENOENT && (folder = strsep(&rest, ":")))
        rc = try_folder(folder, file, path);
    free(copy);
    return rc;
}

static int try_file_of_folders(const char *name, unsigned depth, const char *file, char **path);

static int try_include(const char *pattern, unsigned depth, const char *file, char **path)
{
    glob_t found;
    int rc = -ENOENT;
    if (depth >= MAX_INCLUDES || glob(pattern, 0, NULL, &found) != 0)
        return rc;
    for (size_t i = 0; rc == -ENOENT && i < found.gl_pathc; i++)
        rc = try_file_of_folders(found.gl_pathv[i], depth + 1, file, path);
    globfree(&found);
    return rc;
}

// The format of ldconfig(8): a folder or `include PATTERN` a line, # begins a comment.
static int try_file_of_folders(const char *name, unsigned depth, const char *file, char **path)
{
    char line[PATH_MAX];
    int rc = -ENOENT;
    FILE *f = fopen(name, "re");
    if (!f)
        return rc;
    while (rc == -ENOENT && fgets(line, sizeof line, f)) {
        char *text = line + strspn(line, " \t");
        text[strcspn(text, "#\n")] = 0;
        for (size_t n = strlen(text); n && (text[n - 1] == ' ' || text[n - 1] == '\t'); n--)
            text[n - 1] = 0;
        if (strncmp(text, "include ", 8) == 0)
            rc = try_include(text + 8, depth, file, path);
        else
            rc = try_folder(text, file, path);
    }
    fclose(f);
    return rc;
}

int folders_find(const char *file, char **path)
{
    const char *list = getenv("LD_LIBRARY_PATH");
    int rc = list ? try_list(list, file, path) : -ENOENT;
    if (rc == -ENOENT)
        rc = try_file_of_folders("/etc/ld.so.conf", 0, file, path);
    if (rc == -ENOENT)
        rc = try_list("/lib64:/usr/lib64:/lib:/usr/lib:/usr/local/lib", file, path);
    return rc;
}
