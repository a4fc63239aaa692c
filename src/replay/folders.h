// The folders in which the loader looks for libraries.
#ifndef HEAPTAPE_REPLAY_FOLDERS_H
#define HEAPTAPE_REPLAY_FOLDERS_H

// Finds a library by its file name as ld.so would: LD_LIBRARY_PATH, the folders of /etc/ld.so.conf, the standard ones.
// 0 and an absolute path that the caller frees, -ENOENT, -ENOMEM.
int folders_find(const char *file, char **path);

#endif
