import Dispatch
import Foundation
import Synchronization

/// Threads for calls that may block: a read in the mount waits for a network, and Swift's own threads
/// are as few as the machine's processors.
///
/// At most as many calls run at a time as there are threads; the others wait, and are no more than the
/// connections being served.
final class BlockingWork: Sendable {
    private let queue = Mutex<[@Sendable () -> Void]>([])
    private let ready = DispatchSemaphore(value: 0)

    /// The threads of this process, which live as long as it does.
    static let shared = BlockingWork(threads: 16)

    private init(threads: Int) {
        for number in 0..<threads {
            let thread = Thread { [self] in
                while true {
                    ready.wait()
                    let work = queue.withLock { $0.isEmpty ? nil : $0.removeFirst() }
                    work?()
                }
            }
            thread.name = "oort-web-\(number)"
            thread.start()
        }
    }

    /// Does something on one of the threads.
    static func run<Value: Sendable>(
        _ work: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let result: Result<Value, Failure> = await withCheckedContinuation { continuation in
            shared.queue.withLock { queue in
                queue.append {
                    do throws(Failure) {
                        continuation.resume(returning: .success(try work()))
                    } catch {
                        continuation.resume(returning: .failure(error))
                    }
                }
            }
            shared.ready.signal()
        }
        return try result.get()
    }
}
