load trace

# Plug-ins of equal layout: the loader maps each at the address of the previous one. "host THREADS
# PLUG-IN..." loads them one by one and allocates 100 blocks through each.
setup_file() {
  local name
  cd "$BATS_FILE_TMPDIR" || return
  for name in one two three; do
    printf '#include <stdlib.h>\nvoid *plug_%s(size_t n) { char *p = malloc(n); if (p) *p = 1; return p; }\n' $name >$name.c
    cc -O1 -g -fPIC -shared -fno-builtin -fno-optimize-sibling-calls $name.c -o $name.so
  done
  cat >host.c <<'END'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>

static void *(*allocate)(size_t);
static size_t size;

static void *run(void *unused)
{
    for (int k = 0; k < 100; k++)
        allocate(size);
    return unused;
}

static void *use(const char *name)
{
    char path[100], function[100];
    snprintf(path, sizeof path, "./%s.so", name);
    snprintf(function, sizeof function, "plug_%s", name);
    void *handle = dlopen(path, RTLD_NOW);
    allocate = (void *(*)(size_t))dlsym(handle, function);
    fprintf(stderr, "%p\n", (void *)allocate);
    size = 1000 * strlen(name);
    return handle;
}

int main(int argc, char **argv)
{
    int n_threads = atoi(argv[1]);
    for (int i = 2; i < argc; i++) {
        if (!strcmp(argv[i], "fork")) {
            if (fork()) {
                int status;
                wait(&status);
                return status;
            }
            continue;
        }
        void *handle = use(argv[i]);
        pthread_t threads[16];
        for (int k = 0; k < n_threads; k++)
            pthread_create(&threads[k], NULL, run, NULL);
        for (int k = 0; k < n_threads; k++)
            pthread_join(threads[k], NULL);
        run(NULL);
        dlclose(handle);
    }
    return 0;
}
END
  cc -O1 -g -fno-builtin host.c -o host -lpthread
}

# plays STACKS THREADS PLUG-IN...: records the host, which must have loaded all plug-ins at one
# address.
plays() {
  skip_under_sanitizer
  cp "$BATS_FILE_TMPDIR"/{one,two,three}.so .
  local stacks=$1
  shift
  "$HEAPTAPE" record -q --stacks="$stacks" -f -o t.ht -- "$BATS_FILE_TMPDIR/host" "$@" 2>addresses
  [ "$(grep '^0x' addresses | sort -u | wc -l)" -eq 1 ] || skip "the loader chose different addresses"
}

# allocs NAME: the number of blocks, and of sites, whose direct caller is the plug-in's function.
allocs() {
  "$HEAPTAPE" stat --by site --format json "$1" |
    jq -r --arg f "plug_$2" '[.sites[] | select(.frames[0].function == $f)] | "\(map(.allocs) | add) \(length)"'
}

@test "two plug-ins loaded alternately at one address have separate call sites" {
  plays 32 0 one two one two one two
  [ "$(allocs t.ht one)" = "300 1" ]
  [ "$(allocs t.ht two)" = "300 1" ]
  "$HEAPTAPE" convert -q -f -o t.htw t.ht
  [ "$(allocs t.htw two)" = "300 1" ]
  "$HEAPTAPE" check t.ht
}

@test "alternating plug-ins: only the direct caller, and the whole stack of several threads" {
  plays 1 0 one two one two
  [ "$(allocs t.ht one)" = "200 1" ]
  [ "$(allocs t.ht two)" = "200 1" ]
  plays 32 4 one two three one
  [ "$(allocs t.ht one | cut -d' ' -f1)" = 1000 ]
  [ "$(allocs t.ht two | cut -d' ' -f1)" = 500 ]
  [ "$(allocs t.ht three | cut -d' ' -f1)" = 500 ]
}

@test "alternating plug-ins: a fork child continues with its own" {
  plays 32 0 one two fork one three two
  # The parent, then the child, whose list also has the inherited sites. The child's pid is smaller if
  # the kernel's last pid was the largest.
  for pid in $("$HEAPTAPE" stat --json t.ht | jq '.processes | map(.pid) as $all | sort_by(.ppid | IN($all[]))[].pid'); do
    "$HEAPTAPE" convert -q -f --pid "$pid" -o "$pid.htw" t.ht
    echo "$(allocs "$pid.htw" one) $(allocs "$pid.htw" two) $(allocs "$pid.htw" three)"
  done >seen
  cat seen
  diff seen - <<<"100 1 100 1 null 0
100 2 100 2 100 1"
}

@test "a plug-in that is loaded repeatedly has one site" {
  plays 32 0 one one one one one one
  [ "$(allocs t.ht one)" = "600 1" ]
  [ "$("$HEAPTAPE" dump -F json -k heaptape.module t.ht | grep -c 'one\.so')" -eq 1 ]
}
