// Decides which processes of a session are recorded.
#include "capture/producer/producer_private.h"

#include <fcntl.h>
#include <sys/syscall.h>

// Matches a character with the set at `*at`, "[a-z]" or "[!a-z]", and moves `*at` past the set.
static bool match_set(const char **at, char c)
{
    const char *p = *at + 1;
    bool negated = *p == '!' || *p == '^', found = false;
    p += negated;
    for (bool first = true; *p && (first || *p != ']'); first = false) {
        if (p[1] == '-' && p[2] && p[2] != ']') {
            found |= p[0] <= c && c <= p[2];
            p += 3;
        } else {
            found |= *p++ == c;
        }
    }
    *at = *p ? p + 1 : p;
    return found != negated;
}

// Returns true if the pattern, which may contain *, ? and [sets], matches the whole text. Does not
// use fnmatch(3), which may allocate.
static bool match_glob(const char *pattern, const char *text)
{
    const char *star = NULL, *resume = NULL;
    while (*text) {
        const char *at = pattern;
        if (*at == '*') {
            star = ++pattern;
            resume = text;
            continue;
        }
        bool same = *at == '[' ? match_set(&at, *text) : *at && (*at == '?' || *at == *text);
        if (same) {
            pattern = *pattern == '[' ? at : pattern + 1;
            text++;
        } else if (star) {
            pattern = star;
            text = ++resume;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

bool producer_is_followed(const struct spool_session *session)
{
    char exe[PRODUCER_MAX_PATH];
    if (!(session->flags & (SPOOL_FOLLOW_NONE | SPOOL_FOLLOW_MATCH)))
        return true;
    // A child of the recorder is always recorded, even after exec.
    if ((uint32_t)syscall(SYS_getppid) == session->recorder_pid)
        return true;
    if (session->flags & SPOOL_FOLLOW_NONE)
        return false;
    long n = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", exe, sizeof exe - 1);
    exe[n > 0 ? n : 0] = 0;
    const char *slash = strrchr(exe, '/');
    return match_glob(session->follow, slash ? slash + 1 : exe);
}
