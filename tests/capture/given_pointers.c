// Gives pointers to libc's functions, which are stored before an attach, to Lua, zlib and libcurl.
// When the test creates the file "go", each library calls them. Prints the number of calls.
#include "when_told.h"

#include <curl/curl.h>
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { ROUNDS = 20, BYTES = 50000 };

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
} given;

static unsigned long mallocs, callocs, reallocs, frees;

static void *give_malloc(size_t size)
{
    mallocs++;
    return given.malloc(size);
}

static void *give_calloc(size_t count, size_t size)
{
    callocs++;
    return given.calloc(count, size);
}

static void *give_realloc(void *old, size_t size)
{
    reallocs++;
    return given.realloc(old, size);
}

static void give_free(void *p)
{
    frees += p != NULL;
    given.free(p);
}

static char *give_strdup(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = give_malloc(n);
    return copy ? memcpy(copy, text, n) : NULL;
}

static void *give_lua(void *context, void *old, size_t had, size_t size)
{
    (void)context, (void)had;
    if (size)
        return give_realloc(old, size);
    give_free(old);
    return NULL;
}

static void *give_zlib(void *context, unsigned count, unsigned size)
{
    (void)context;
    return give_calloc(count, size);
}

static void free_zlib(void *context, void *p)
{
    (void)context;
    give_free(p);
}

static void run_lua(void)
{
    lua_State *l = lua_newstate(give_lua, NULL);
    luaL_openlibs(l);
    if (luaL_dostring(l, "local t = {} for i = 1, 300 do t[i] = ('x'):rep(i) .. i end"))
        abort();
    lua_close(l);
}

static void run_zlib(void)
{
    static unsigned char in[BYTES], out[2 * BYTES];
    z_stream z = {.zalloc = give_zlib,
                  .zfree = free_zlib,
                  .next_in = in,
                  .avail_in = sizeof in,
                  .next_out = out,
                  .avail_out = sizeof out};
    if (deflateInit(&z, 6) != Z_OK || deflate(&z, Z_FINISH) != Z_STREAM_END ||
        deflateEnd(&z) != Z_OK)
        abort();
}

static void run_curl(void)
{
    struct curl_slist *list = NULL;
    CURLU *url = curl_url();
    char *text = NULL;
    for (int i = 0; i < 10; i++)
        list = curl_slist_append(list, "Header: value");
    if (!list || curl_url_set(url, CURLUPART_URL, "http://a.example/b?c=d", 0) ||
        curl_url_get(url, CURLUPART_URL, &text, 0))
        abort();
    curl_free(text);
    curl_free(curl_easy_escape(NULL, "a b/c", 0));
    curl_url_cleanup(url);
    curl_slist_free_all(list);
}

static void run_all(void)
{
    mallocs = callocs = reallocs = frees = 0;
    for (int i = 0; i < ROUNDS; i++) {
        run_lua();
        run_zlib();
        run_curl();
    }
    // printf and dprintf would allocate a buffer.
    char text[200];
    int n = snprintf(text, sizeof text, "malloc %lu\ncalloc %lu\nrealloc %lu\nfree %lu\n", mallocs,
                     callocs, reallocs, frees);
    if (write(1, text, (size_t)n) != n)
        abort();
}

int main(int argc, char **argv)
{
    (void)argv;
    given.malloc = malloc;
    given.calloc = calloc;
    given.realloc = realloc;
    given.free = free;
    if (curl_global_init_mem(CURL_GLOBAL_NOTHING, give_malloc, give_free, give_realloc, give_strdup,
                             give_calloc))
        return 1;
    run_all(); // whatever is allocated once
    return when_told(argc, run_all);
}
