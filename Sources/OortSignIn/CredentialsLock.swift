import Foundation
import OortTransport
import SystemPackage

/// Keeps everybody else, in this process and in others, from changing the stored credentials of one account.
///
/// Whoever changes them holds it from reading what is stored until the new is durable: a refresh token that
/// works once must not be sent by two, nor what was forgotten be stored again.
public struct CredentialsLock: Sendable {
    private let file: (descriptor: FileDescriptor, path: String)?

    /// No lock, of a store that nobody else can reach.
    public init() { file = nil }

    /// Takes the lock that the file at `path` is, which is there only as long as somebody holds or wants it.
    ///
    /// - Throws: `.store` when another one holds it for all of `patience`, or there can be no such file;
    ///   `.transport(.cancelled)`.
    init(
        _ path: String,
        of account: String,
        patience: Duration
    ) async throws(SignInError) {
        let start = ContinuousClock.now
        while true {
            if let descriptor = try Self.take(path) {
                file = (descriptor, path)
                return
            }
            guard ContinuousClock.now - start < patience else {
                throw .store(
                    "another process of Oort's is busy with the tokens of \(account); try again when that "
                        + "has ended"
                )
            }
            do { try await Task.sleep(for: .milliseconds(50)) } catch {
                throw .transport(.cancelled)
            }
        }
    }

    /// Lets others go on.
    public func end() {
        guard let file else { return }
        // As long as it is held, nobody else removes it: this is the same file.
        _ = unsafe unlink(file.path)
        try? file.descriptor.close()
    }

    /// The locked file; nil where another one holds it, or has just removed it.
    private static func take(_ path: String) throws(SignInError) -> FileDescriptor? {
        let descriptor: FileDescriptor
        do {
            try FileManager.default.createDirectory(
                atPath: (path as NSString).deletingLastPathComponent,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
            descriptor = try FileDescriptor.open(
                FilePath(path),
                .readWrite,
                options: [.create, .closeOnExec],
                permissions: .ownerReadWrite
            )
        } catch {
            throw .store("the lock \(path) cannot be opened: \(error)")
        }
        guard flock(descriptor.rawValue, LOCK_EX | LOCK_NB) == 0 else {
            let error = Errno(rawValue: errno)
            try? descriptor.close()
            guard error == .wouldBlock || error == .interrupted else {
                throw .store("the lock \(path) cannot be had: \(error)")
            }
            return nil
        }
        var (held, named) = (stat(), stat())
        guard unsafe fstat(descriptor.rawValue, &held) == 0, unsafe stat(path, &named) == 0,
            held.st_ino == named.st_ino, held.st_dev == named.st_dev
        else {
            try? descriptor.close()
            return nil
        }
        return descriptor
    }
}
