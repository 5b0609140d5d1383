internal import CFUSEGuard
import Glibc

/// A mounted file system, with the threads that serve it.
///
///     let mount = try Mount(fileSystem, at: "/home/me/files", options: .init(…))
///     await mount.end()          // until somebody unmounts it
///
/// Letting the object go does not unmount: that is what `unmount` is for.
public final class Mount: Sendable {
    private struct State {
        /// Threads that serve requests.
        var serving: Int
        /// How long programs may keep their open files after `unmount`; nil until it is called.
        var stopLimit: Duration?
        var end: Result<Void, MountError>?
        /// Who waits for the end.
        var waiting: [CheckedContinuation<Result<Void, MountError>, Never>] = []
        /// Who has asked for it, and hears if the system refuses.
        var unmounting: [CheckedContinuation<Result<Void, MountError>, Never>] = []
    }

    /// Where the file system is mounted, without symbolic links.
    public let path: String
    /// The folder beside the mount point that has what programs wrote at that in the moment of mounting;
    /// nil where they wrote nothing.
    public let foundBeneath: String?
    /// Notifies the kernel of changes behind its back.
    public let notifier: Notifier

    private let point: MountPoint
    private let device: String
    private let state: Monitor<State>

    /// Mounts a file system and starts serving it.
    ///
    /// A mount that a dead daemon left at `path` is taken away first. Blocks: for the system, and if a
    /// live file system is mounted there, for that one's daemon. The kernel's first request is answered
    /// after `willServe` has returned.
    /// - Throws: `MountError`; nothing is then mounted and no thread left.
    public init(
        _ fileSystem: some LowLevelFileSystem,
        at path: String,
        options: Options,
        guest: Guest? = nil,
        willServe: (Notifier) -> Void = { _ in }
    ) throws(MountError) {
        OwnThread.prepareWaking()
        point = try MountPoint(path, coversFiles: options.coversFiles)
        self.path = point.path
        notifier = Notifier(limit: options.newsLimit)
        let core = try SessionCore(
            fileSystem,
            options: options,
            notifier: notifier,
            guest: guest
        )
        let point = point
        foundBeneath = try point.cover(sealing: options.sealsFolder) { () throws(MountError) in
            try core.mount(at: point.path)
        }
        guard let device = try point.device() else {
            throw .system(.noSuchFile, "mount", path: point.path)
        }
        self.device = device
        state = Monitor(State(serving: 0))
        willServe(notifier)
        // Where there is none, the mount is served all the same.
        let guardian = fuse_guard_start(core.device, SessionCore.largestRequest)
        do throws(Errno) {
            try start(core, threads: max(1, options.threads), guardian)
        } catch {
            _ = try? point.detach(device: device)
            core.end()
            fuse_guard_end(guardian)
            core.disconnect()
            throw .system(error, "pthread_create", path: point.path)
        }
    }

    /// Returns when the file system is no longer served: after `unmount`, or when it was unmounted from
    /// outside.
    ///
    /// - Throws: `.stillBusy` if threads had to be left inside the file system.
    public func end() async throws(MountError) {
        let result = await withCheckedContinuation { continuation in
            let result = state.update { state -> Result<Void, MountError>? in
                if state.end == nil { state.waiting.append(continuation) }
                return state.end
            }
            if let result { continuation.resume(returning: result) }
        }
        try result.get()
    }

    /// Unmounts, and returns when the last thread has ended.
    ///
    /// Programs that have files open are served on for `limit`; then their calls fail. A second call
    /// only waits.
    /// - Throws: what the system says if it does not unmount (the file system is then served on until
    ///   it is called again), or `.stillBusy` if a thread does not come back from the file system within
    ///   another `limit` (at least a second).
    public func unmount(within limit: Duration = .seconds(5)) async throws(MountError) {
        let result = await withCheckedContinuation { continuation in
            let result = state.update { state -> Result<Void, MountError>? in
                if state.end == nil {
                    state.unmounting.append(continuation)
                    if state.stopLimit == nil { state.stopLimit = limit }
                }
                return state.end
            }
            if let result { continuation.resume(returning: result) }
        }
        try result.get()
    }

    // MARK: - The mount's threads

    private func start(
        _ core: SessionCore,
        threads count: Int,
        _ guardian: fuse_guard
    ) throws(Errno) {
        let telling = Monitor(true)
        let notifier = notifier
        let teller = Teller()
        let tellerThread = try OwnThread(named: "fuse-teller") { teller.run(core) }
        let notifierThread: OwnThread
        do throws(Errno) {
            notifierThread = try OwnThread(named: "fuse-notifier") {
                notifier.run(core, teller)
                tellerThread.join()
                telling.update { $0 = false }
            }
        } catch {
            teller.end()
            tellerThread.join()
            throw error
        }
        var workers: [OwnThread] = []
        let state = state
        do throws(Errno) {
            for number in 0..<count {
                state.update { $0.serving += 1 }
                workers.append(
                    try OwnThread(named: "fuse-\(number)") {
                        core.serve()
                        state.update { $0.serving -= 1 }
                    }
                )
            }
            let threads = workers
            let supervisor = try OwnThread(named: "fuse-mount") { [self] in
                supervise(core, threads, notifierThread, telling, guardian)
            }
            supervisor.detach()
        } catch {
            notifier.end()
            core.end()
            notifierThread.join()
            // The workers come back when the caller unmounts.
            for worker in workers { worker.detach() }
            throw error
        }
    }

    /// Waits for the end, whoever causes it, and clears up.
    private func supervise(
        _ core: SessionCore,
        _ workers: [OwnThread],
        _ notifierThread: OwnThread,
        _ telling: Monitor<Bool>,
        _ guardian: fuse_guard
    ) {
        var result: Result<Void, MountError> = .success(())
        while case .stop(let limit) = nextEvent() {
            do throws(MountError) {
                _ = try point.detach(device: device)
            } catch {
                refuse(error)
                continue
            }
            if !allServed(within: limit), !interrupt(core, workers, within: limit) {
                result = .failure(.stillBusy(path: path))
            }
            break
        }
        notifier.end()
        let hasToldAll = telling.wait(atMost: .seconds(1)) { $0 ? nil : true } ?? false
        if case .success = result {
            for worker in workers { worker.join() }
        } else {
            for worker in workers { worker.detach() }
        }
        if hasToldAll { fuse_guard_end(guardian) } else { fuse_guard_call(guardian) }
        core.disconnect()
        if hasToldAll { notifierThread.join() } else { notifierThread.detach() }
        core.fileSystem.destroy()
        finish(result)
        // Only this thread is left, and no thread waits for it.
        if !hasToldAll { fuse_guard_wait(guardian) }
    }

    private enum Event {
        case served
        case stop(Duration)
    }

    private func nextEvent() -> Event {
        state.wait { state in
            if state.serving == 0 { return .served }
            return state.stopLimit.map { .stop($0) }
        }
    }

    private func allServed(within limit: Duration) -> Bool {
        state.wait(atMost: limit) { $0.serving == 0 ? true : nil } ?? false
    }

    /// Ends the connection although files are still open.
    ///
    /// A signal that arrives just before a thread goes into the kernel is lost: so again and again.
    private func interrupt(
        _ core: SessionCore,
        _ workers: [OwnThread],
        within limit: Duration
    ) -> Bool {
        core.end()
        MountPoint.abortConnection(device: device)
        let clock = ContinuousClock()
        let deadline = clock.now + max(limit, .seconds(1))
        repeat {
            for worker in workers { worker.wake() }
            if allServed(within: .milliseconds(10)) { return true }
        } while clock.now < deadline
        return false
    }

    /// Reports to waiting callers that unmounting failed; the file system is still served.
    private func refuse(_ error: MountError) {
        let waiting = state.update { state in
            state.stopLimit = nil
            defer { state.unmounting = [] }
            return state.unmounting
        }
        for continuation in waiting { continuation.resume(returning: .failure(error)) }
    }

    private func finish(_ result: Result<Void, MountError>) {
        let waiting = state.update { state in
            state.end = result
            defer {
                state.waiting = []
                state.unmounting = []
            }
            return state.waiting + state.unmounting
        }
        for continuation in waiting { continuation.resume(returning: result) }
    }
}
