import Foundation

/// The right to be the one mount that uses a state folder; given back when the process ends,
/// however it ends.
final class InstanceLock: Sendable {
    private let descriptor: Int32

    /// Takes the lock.
    ///
    /// - Throws: `Failure` naming the process that holds it.
    init(path: String, mounting mountPoint: String) throws(Failure) {
        let descriptor = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw Failure(
                "The lock \(path) cannot be opened: \(Self.errorText()).",
                advice: "Check the free space and the permissions of its folder."
            )
        }
        // A client that tests the lock holds it for a moment itself.
        var tries = 0
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0, tries < 10 {
            tries += 1
            usleep(20_000)
        }
        guard tries < 10 else {
            close(descriptor)
            let holder = InstanceLock.holder(path: path)
            let isService = holder.map { ServiceUnit.runs($0.process) } ?? false
            throw Failure(
                "Oort is already running for this state"
                    + (holder.map { " (process \($0.process), mounted at \($0.mountPoint))" } ?? "")
                    + (isService ? ", as the service \(ServiceUnit.name)." : "."),
                advice: isService
                    ? "Use that mount, or stop it until your next login: oort unmount "
                        + "(for good: oort service remove)"
                    : "Use that mount, or stop it first: oort unmount"
            )
        }
        self.descriptor = descriptor
        let text = Data("\(getpid())\n\(mountPoint)\n".utf8)
        ftruncate(descriptor, 0)
        try? FileHandle(fileDescriptor: descriptor).write(contentsOf: text)
    }

    deinit {
        // A lock file with words in it that is not locked means that its holder died.
        ftruncate(descriptor, 0)
        close(descriptor)
    }

    /// Whether the lock is held now.
    static func isHeld(path: String) -> Bool {
        // Only to be read: the disk may have turned read-only under a mount that runs.
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return flock(descriptor, LOCK_SH | LOCK_NB) != 0
    }

    /// Who wrote the lock file last: the holder, while it is held; else one that did not end orderly.
    static func holder(path: String) -> (process: Int32, mountPoint: String)? {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return nil }
        let lines = text.split(separator: "\n", maxSplits: 1)
        guard lines.count == 2, let process = Int32(lines[0]) else { return nil }
        return (process, String(lines[1].dropLast()))
    }

    private static func errorText() -> String { POSIXText.ofErrno() }
}

/// What the system says about an error number.
enum POSIXText {
    /// The words for `errno` as it is now.
    static func ofErrno() -> String { of(errno) }

    /// The words for an error number.
    static func of(_ code: Int32) -> String {
        unsafe strerror(code).map { unsafe String(cString: $0) } ?? "error \(code)"
    }
}
