#pragma once
// What of Linux the toolchain's Glibc module leaves out.
//
// Only headers that define no type of that module, and declarations without its types: a type that two
// modules define belongs to one or the other by the order in which a compiler happens to load them, and a
// file that imports only the other is then refused.
#include <sys/statfs.h>

// sys/xattr.h, which would bring sys/types.h.
long lgetxattr(const char *path, const char *name, void *value, unsigned long size);

// Glibc declares these for other compilers only; the name behind each declaration is the function's own.
// `actions` is a `posix_spawn_file_actions_t`.
int oort_spawn_in(void *actions, const char *folder) __asm__("posix_spawn_file_actions_addchdir_np");
int oort_spawn_closing_from(void *actions, int descriptor)
    __asm__("posix_spawn_file_actions_addclosefrom_np");
int oort_pipe(int ends[2], int flags) __asm__("pipe2");

// malloc.h, which would bring stdio.h. `parameter` -8 is M_ARENA_MAX.
int mallopt(int parameter, int value);
