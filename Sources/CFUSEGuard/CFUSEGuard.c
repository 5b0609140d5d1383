// C, because between fork and exit a process that had threads may only call what is safe in a signal
// handler, which nothing written in Swift can promise.
#define _GNU_SOURCE
#include "CFUSEGuard.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// The guard's own descriptors, in place of the standard streams.
enum { END, PROCESS, DEVICE };

/// A second way to the connection of a device; -1 where there is none.
static int clone_device(int device) {
    int other = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (other < 0) return -1;
    __u32 original = (__u32)device;
    if (ioctl(other, FUSE_DEV_IOC_CLONE, &original) == 0) return other;
    int error = errno;
    close(other);
    errno = error;
    return -1;
}

/// Whether the kernel expects an answer.
static bool is_answered(__u32 opcode) {
    return opcode != FUSE_FORGET && opcode != FUSE_BATCH_FORGET && opcode != FUSE_INTERRUPT;
}

/// Refuses all that is asked, until the connection is gone, or the guarded process is and nothing is
/// asked for a while: what is asked in the moment of the end would be told another error, by which
/// fusermount3, for one, does not know a dead mount.
static void refuse_all(void *buffer, size_t size) {
    struct pollfd waited[] = {
        {.fd = DEVICE, .events = POLLIN},
        {.fd = PROCESS, .events = POLLIN},
    };
    for (;;) {
        int count = poll(waited, 2, waited[1].fd < 0 ? 1000 : -1);
        if (count == 0 || (count < 0 && errno != EINTR)) return;
        if (count < 0) continue;
        // A negative descriptor is not waited for.
        if (waited[1].revents != 0) waited[1].fd = -1;
        if (waited[0].revents & (POLLERR | POLLHUP)) return;
        if (!(waited[0].revents & POLLIN)) continue;
        ssize_t length = read(DEVICE, buffer, size);
        if (length < 0 && errno == ENODEV) return;
        if (length < (ssize_t)sizeof(struct fuse_in_header)) continue;
        const struct fuse_in_header *request = buffer;
        if (!is_answered(request->opcode)) continue;
        struct fuse_out_header answer = {
            .len = sizeof answer, .error = -ENOTCONN, .unique = request->unique};
        // ENOENT: the program did not wait.
        if (write(DEVICE, &answer, sizeof answer) < 0 && errno == ENODEV) return;
    }
}

/// The number in hexadecimal digits at a place, which goes on behind it.
static unsigned long number(const char **place) {
    unsigned long value = 0;
    for (;; (*place)++) {
        char digit = **place;
        if (digit >= '0' && digit <= '9') value = value * 16 + (unsigned long)(digit - '0');
        else if (digit >= 'a' && digit <= 'f') value = value * 16 + (unsigned long)(digit - 'a' + 10);
        else return value;
    }
}

/// Lets go of the files that are mapped to be shared, as a database's are: their disk could not be
/// unmounted. The list of mappings is read into `buffer`.
static void unmap_shared(char *buffer, size_t size) {
    int list = open("/proc/self/maps", O_RDONLY);
    if (list < 0) return;
    size_t filled = 0;
    ssize_t length;
    while (filled < size - 1 && (length = read(list, buffer + filled, size - 1 - filled)) > 0)
        filled += (size_t)length;
    close(list);
    buffer[filled] = 0;
    // "START-END rwxs OFFSET ..."; the fourth letter is s of what is shared.
    for (const char *line = buffer; *line != 0;) {
        unsigned long start = number(&line);
        if (*line == '-') line++;
        unsigned long end = number(&line);
        if (*line == ' ' && line[1] && line[2] && line[3] && line[4] == 's' && start < end)
            munmap((void *)start, end - start);
        while (*line != 0 && *line != '\n') line++;
        if (*line != 0) line++;
    }
}

static void guard(int end, int process, int device, size_t size) {
    // Not of the terminal's, whose signals are the guarded process's to obey.
    setsid();
    prctl(PR_SET_NAME, "fuse-guard");
    // Nothing is held that somebody waits to see closed, or wants to unmount.
    dup2(end, END);
    dup2(process, PROCESS);
    dup2(device, DEVICE);
    close_range(3, ~0U, 0);
    if (chdir("/") != 0) _exit(1);
    fcntl(DEVICE, F_SETFL, O_NONBLOCK);
    void *buffer =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffer != MAP_FAILED) unmap_shared(buffer, size);
    char byte;
    ssize_t length;
    do length = read(END, &byte, 1);
    while (length < 0 && errno == EINTR);
    if (length == 0 && buffer != MAP_FAILED) refuse_all(buffer, size);
    _exit(0);
}

struct fuse_guard fuse_guard_start(int device, size_t request_size) {
    struct fuse_guard none = {.process = -1, .end = -1};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return none;
    // The kernel gives a request to none that could not take the largest.
    size_t size = request_size + sizeof(struct fuse_in_header) + sizeof(struct fuse_write_in);
    if (size < FUSE_MIN_READ_BUFFER) size = FUSE_MIN_READ_BUFFER;
    int process = (int)syscall(SYS_pidfd_open, getpid(), 0);
    int other = process < 0 ? -1 : clone_device(device);
    // The child obeys no signal from its first moment.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t child = other < 0 ? -1 : fork();
    if (child == 0) {
        // Above the numbers that they get.
        int kept[] = {ends[0], process, other};
        for (int index = 0; index < 3; index++) {
            kept[index] = fcntl(kept[index], F_DUPFD, 3);
            if (kept[index] < 0) _exit(1);
        }
        guard(kept[0], kept[1], kept[2], size);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(ends[0]);
    if (process >= 0) close(process);
    if (other >= 0) close(other);
    if (child > 0) return (struct fuse_guard){.process = child, .end = ends[1]};
    close(ends[1]);
    return none;
}

void fuse_guard_end(struct fuse_guard guard) {
    if (guard.process <= 0) return;
    char byte = 0;
    // EPIPE: it is gone already.
    (void)send(guard.end, &byte, 1, MSG_NOSIGNAL);
    close(guard.end);
    fuse_guard_wait(guard);
}

void fuse_guard_call(struct fuse_guard guard) {
    if (guard.process > 0) close(guard.end);
}

void fuse_guard_wait(struct fuse_guard guard) {
    if (guard.process <= 0) return;
    while (waitpid(guard.process, NULL, 0) < 0 && errno == EINTR) {}
}

int fuse_guard_isolate_thread(int device) {
    if (unshare(CLONE_FILES) != 0) return -1;
    int other = clone_device(device);
    int error = errno;
    if (other >= 0) {
        dup3(other, device, O_CLOEXEC);
        close(other);
    }
    close_range(3, (unsigned)device - 1, 0);
    close_range((unsigned)device + 1, ~0U, 0);
    errno = error;
    return other < 0 ? -1 : 0;
}
