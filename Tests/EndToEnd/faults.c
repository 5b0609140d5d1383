/* Preloaded into a mount: counts the calls that change its catalog, its staged and its cached
 * contents, and does something else in place of one of them.
 *
 * OORT_TEST_FAULTS names a file of five 64-bit numbers that the test and the mount share:
 * count    calls so far
 * at       the first call that is hit, counted from 1; 0: none
 * until    the last call that is hit
 * action   1 dies before the call, 2 dies in the midst of it (half of the bytes are written),
 *          3 dies after it, 4 fails with `error`
 * error    an errno
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/types.h>
#include <unistd.h>

struct control { uint64_t count, at, until, action, error; };
static struct control *control;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("OORT_TEST_FAULTS");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *memory = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory != MAP_FAILED) control = memory;
}

static int is_watched(const char *path) {
    return path && (strstr(path, "/catalog.sqlite") || strstr(path, "/oort/staged/") ||
                    strstr(path, "/oort/content/"));
}

static int is_watched_file(int file) {
    char link[40], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_watched(path);
}

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

/* What is to be done with this call: 0 for nothing. */
static uint64_t chosen(void) {
    uint64_t number = __atomic_add_fetch(&control->count, 1, __ATOMIC_SEQ_CST);
    uint64_t at = control->at;
    if (!at || number < at || number > control->until) return 0;
    if (control->action == 1) die();
    return control->action;
}

#define NEXT(name) static __typeof__(&name) next; if (!next) next = dlsym(RTLD_NEXT, #name)

#define AROUND(watched, half, call)                                  \
    do {                                                             \
        int saved = errno;                                           \
        uint64_t action = control && (watched) ? chosen() : 0;       \
        errno = saved;                                               \
        if (!action) return call;                                    \
        if (action == 4) { errno = (int)control->error; return -1; } \
        if (action == 2) { (void)!(half); die(); }                   \
        (void)!(call);                                               \
        die();                                                       \
    } while (0);                                                     \
    return -1

ssize_t write(int file, const void *bytes, size_t count) {
    NEXT(write);
    AROUND(is_watched_file(file), next(file, bytes, count / 2), next(file, bytes, count));
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
    NEXT(pwrite);
    AROUND(is_watched_file(file), next(file, bytes, count / 2, offset),
           next(file, bytes, count, offset));
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset) {
    NEXT(pwrite64);
    AROUND(is_watched_file(file), next(file, bytes, count / 2, offset),
           next(file, bytes, count, offset));
}

ssize_t sendfile(int out, int in, off_t *offset, size_t count) {
    NEXT(sendfile);
    AROUND(is_watched_file(out), next(out, in, offset, count / 2), next(out, in, offset, count));
}

int ftruncate(int file, off_t size) {
    NEXT(ftruncate);
    AROUND(is_watched_file(file), 0, next(file, size));
}

int ftruncate64(int file, off64_t size) {
    NEXT(ftruncate64);
    AROUND(is_watched_file(file), 0, next(file, size));
}

int fsync(int file) {
    NEXT(fsync);
    AROUND(is_watched_file(file), 0, next(file));
}

int fdatasync(int file) {
    NEXT(fdatasync);
    AROUND(is_watched_file(file), 0, next(file));
}

int rename(const char *from, const char *to) {
    NEXT(rename);
    AROUND(is_watched(from) || is_watched(to), 0, next(from, to));
}

int unlink(const char *path) {
    NEXT(unlink);
    AROUND(is_watched(path), 0, next(path));
}

#define OPEN(name)                                                       \
    int name(const char *path, int flags, ...) {                         \
        NEXT(name);                                                      \
        va_list list;                                                    \
        va_start(list, flags);                                           \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0; \
        va_end(list);                                                    \
        AROUND((flags & O_CREAT) && is_watched(path), 0, next(path, flags, mode)); \
    }
OPEN(open)
OPEN(open64)
