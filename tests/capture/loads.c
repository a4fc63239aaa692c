// Loads a library and calls its function MANY times: loads LIBRARY MANY
#include "told.h"

#include <dlfcn.h>

int main(int argc, char **argv)
{
    for (int i = 0; argc > 2 && i < atoi(argv[2]); i++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        void (*call)(void) = library ? (void (*)(void))dlsym(library, "at_load_call") : NULL;
        if (!call || dlsym(library, "no_such_symbol"))
            return 1;
        call();
        dlclose(library);
    }
    return 0;
}
