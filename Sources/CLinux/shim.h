#pragma once
// What of Linux the toolchain's Glibc module leaves out.
#include <spawn.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

// Glibc declares these for other compilers only; the name behind each declaration is the function's own.
int oort_spawn_in(posix_spawn_file_actions_t *actions, const char *folder)
    __asm__("posix_spawn_file_actions_addchdir_np");
int oort_pipe(int ends[2], int flags) __asm__("pipe2");
int oort_spawn_closing_from(posix_spawn_file_actions_t *actions, int descriptor)
    __asm__("posix_spawn_file_actions_addclosefrom_np");
