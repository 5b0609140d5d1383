#pragma once
#include <stddef.h>
#include <sys/types.h>

/// A process beside the one that serves a mount.
struct fuse_guard {
    /// The guard's process; -1 where there is none.
    pid_t process;
    /// By which it hears of the end: closed by a killed process, too.
    int end;
};

/// Starts a guard of the mount that `device` serves; `request_size` is bytes of the largest request.
///
/// It does nothing until it is called or the calling process is gone. When that is killed, it answers what programs
/// ask of the mount by ENOTCONN until the killed process is gone for good, which may have a thread in
/// the kernel that waits for one of these programs; then it ends, and with it the connection.
struct fuse_guard fuse_guard_start(int device, size_t request_size);

/// Ends a guard that is not needed any longer.
void fuse_guard_end(struct fuse_guard guard);

/// Has a guard do its work although the calling process lives, until that or the connection ends.
///
/// Who goes on living has to wait for it, or it stays as a dead process.
void fuse_guard_call(struct fuse_guard guard);

/// Waits for the end of a guard that was called, which comes with the last program that has a file of
/// the mount open.
void fuse_guard_wait(struct fuse_guard guard);

/// Gives the calling thread descriptors of its own: the standard streams, and by the number `device` a
/// second way to that connection; where there is none, the same one. -1 with errno set where the
/// system refuses either.
int fuse_guard_isolate_thread(int device);
