import CCurl
import Foundation
import Synchronization

/// One curl_multi handle and the thread that alone uses it; only `curl_multi_wakeup` is called
/// from elsewhere, under the inbox's lock and never after the handle is gone.
@safe final class CurlLoop: Sendable {
    private enum Command {
        case add(CurlTransfer)
        case resume(CurlTransfer)
        case remove(CurlTransfer)
    }

    private struct Inbox {
        var commands: [Command] = []
        var isStopping = false
        var isGone = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let inbox = Mutex(Inbox())
    // Wakeups libcurl allows from anywhere while it lives, and `inbox` says whether it does;
    // nonisolated(unsafe) because for all else only the thread uses it.
    private nonisolated(unsafe) let multi: UnsafeMutableRawPointer
    private let settings: CurlClient.Settings
    private let thread = Mutex<JoinableThread?>(nil)

    /// The loops whose threads are not joined yet.
    private static let running = Mutex<[ObjectIdentifier: CurlLoop]>([:])

    init(name: String, settings: CurlClient.Settings) throws(TransportError) {
        guard Self.isLibraryReady, let multi = unsafe curl_multi_init() else {
            throw .unreachable("libcurl could not be set up")
        }
        unsafe self.multi = multi
        self.settings = settings
        unsafe oort_multi_set_long(multi, CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX))
        unsafe oort_multi_set_long(multi, CURLMOPT_MAXCONNECTS, 32)
        do throws(TransportError) {
            let started = try JoinableThread(name: name) { self.run() }
            thread.withLock { $0 = started }
        } catch {
            _ = unsafe curl_multi_cleanup(multi)
            throw error
        }
        let ended = Self.running.withLock { running in
            running[ObjectIdentifier(self)] = self
            return running.values.filter(\.isGone)
        }
        // Those that were let go without a word.
        for loop in ended { loop.join() }
    }

    private static let isLibraryReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    // MARK: From any thread

    func add(_ transfer: CurlTransfer) {
        if !post(.add(transfer)) { transfer.finish(.failure(.cancelled)) }
    }

    func resume(_ transfer: CurlTransfer) { _ = post(.resume(transfer)) }

    func remove(_ transfer: CurlTransfer) { _ = post(.remove(transfer)) }

    func stop() {
        inbox.withLock { inbox in
            inbox.isStopping = true
            if !inbox.isGone { _ = unsafe curl_multi_wakeup(multi) }
        }
    }

    /// Stops, and returns when nothing of the thread is left.
    func stopAndWait() async {
        stop()
        await withCheckedContinuation { continuation in
            let isGone = inbox.withLock { inbox in
                if !inbox.isGone { inbox.waiters.append(continuation) }
                return inbox.isGone
            }
            if isGone { continuation.resume() }
        }
        // The thread has said its last word, so this does not hold up the caller's.
        join()
    }

    /// Stops all loops that there are and blocks until nothing is left of their threads.
    static func stopAll() {
        let all = running.withLock { Array($0.values) }
        for loop in all { loop.stop() }
        for loop in all { loop.join() }
    }

    /// Whether something of the thread may be left.
    var isToBeJoined: Bool { Self.running.withLock { $0[ObjectIdentifier(self)] != nil } }

    private var isGone: Bool { inbox.withLock { $0.isGone } }

    private func join() {
        thread.withLock { $0 }?.join()
        Self.running.withLock { $0[ObjectIdentifier(self)] = nil }
    }

    private func post(_ command: Command) -> Bool {
        inbox.withLock { inbox in
            guard !inbox.isStopping else { return false }
            inbox.commands.append(command)
            if inbox.commands.count == 1 { _ = unsafe curl_multi_wakeup(multi) }
            return true
        }
    }

    // MARK: On the thread

    private func run() {
        Self.blockBrokenPipeSignal()
        carry()
        let waiters = inbox.withLock { inbox in
            inbox.isGone = true
            _ = unsafe curl_multi_cleanup(multi)
            return inbox.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Carries transfers until the loop is stopped; then no handle is left.
    private func carry() {
        var carried = unsafe CarriedTransfers(multi: multi, settings: settings)
        while true {
            let (commands, isStopping) = inbox.withLock { inbox in
                defer { inbox.commands = [] }
                return (inbox.commands, inbox.isStopping)
            }
            for command in commands {
                switch command {
                case .add(let transfer): carried.add(transfer)
                case .resume(let transfer): carried.resume(transfer)
                case .remove(let transfer): carried.remove(transfer)
                }
            }
            if isStopping { break }
            carried.perform()
            _ = unsafe curl_multi_poll(multi, nil, 0, carried.pollMilliseconds, nil)
        }
        carried.removeAll()
    }

    /// Makes sockets that the other side closed show by return values, instead of killing the process.
    private static func blockBrokenPipeSignal() {
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        unsafe sigaddset(&signals, SIGPIPE)
        unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
    }
}
