#pragma once
// The version of the API that SwiftFUSE is written against. No other feature macro may stand here:
// _GNU_SOURCE or _FILE_OFFSET_BITS would make this module clash with Glibc's.
#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>
#include <pthread.h>

// Glibc declares these with _GNU_SOURCE only, so Swift does not see them; the names after the
// declarations are the functions' own.
ssize_t swiftfuse_splice(
    int from, off_t *from_offset, int to, off_t *to_offset, size_t size, unsigned int flags)
    __asm__("splice");
int swiftfuse_dup3(int from, int to, int flags) __asm__("dup3");
int swiftfuse_pthread_setname(pthread_t thread, const char *name) __asm__("pthread_setname_np");
