import Foundation
import OortModel

/// Bytes between a task and a thread that blocks, in one direction; holds a bounded amount.
// Unchecked because `condition` guards all that changes.
final class FTPPipe: @unchecked Sendable {
    private let condition = NSCondition()
    private var parts: [[UInt8]] = []
    private var count = 0
    private var end: Result<Void, ProviderError>?
    private var isLetGo = false
    private var waiter: CheckedContinuation<Void, Never>?

    /// The bytes that are held before who gives them waits.
    private static let room = 1 << 20

    private func locked<Value>(_ body: () -> Value) -> Value {
        condition.lock()
        defer { condition.unlock() }
        return body()
    }

    /// Wakes both sides.
    private func tell() {
        condition.broadcast()
        let waiting = waiter
        waiter = nil
        waiting?.resume()
    }

    // MARK: The thread's side

    /// Takes bytes from the thread, once there is room, blocking until then; false when the reader has
    /// gone.
    func give(_ bytes: UnsafeRawBufferPointer, unless mustEnd: () -> Bool) -> Bool {
        condition.lock()
        defer { condition.unlock() }
        while count >= Self.room, !isLetGo {
            if mustEnd() { return false }
            _ = condition.wait(until: Date(timeIntervalSinceNow: 0.5))
        }
        guard !isLetGo else { return false }
        unsafe parts.append(Array(bytes))
        count += bytes.count
        tell()
        return true
    }

    /// Puts bytes into the thread's buffer, blocking until there are some; 0 at the end, nil where there
    /// will be none.
    func fill(_ buffer: UnsafeMutableRawBufferPointer, unless mustEnd: () -> Bool) -> Int? {
        condition.lock()
        defer { condition.unlock() }
        while parts.isEmpty, end == nil {
            if mustEnd() || isLetGo { return nil }
            _ = condition.wait(until: Date(timeIntervalSinceNow: 0.5))
        }
        guard let part = parts.first else {
            if case .success = end { return 0 }
            return nil
        }
        let length = min(part.count, buffer.count)
        unsafe buffer.copyBytes(from: part.prefix(length))
        if length < part.count { parts[0] = Array(part[length...]) } else { parts.removeFirst() }
        count -= length
        tell()
        return length
    }

    // MARK: The task's side

    /// The next bytes from the thread; nil at the end.
    func next() async throws(ProviderError) -> [UInt8]? {
        while true {
            let found = locked { () -> Result<[UInt8]?, ProviderError>? in
                if !parts.isEmpty {
                    let part = parts.removeFirst()
                    count -= part.count
                    tell()
                    return .success(part)
                }
                return end.map { $0.map { nil } }
            }
            if let found { return try found.get() }
            await wait { parts.isEmpty && end == nil }
            if Task.isCancelled { throw ProviderError(.cancelled, detail: "reading was cancelled") }
        }
    }

    /// Returns when the first bytes are here, or none are to come.
    ///
    /// - Throws: why none come.
    func begin() async throws(ProviderError) {
        while true {
            let found = locked { parts.isEmpty ? end : .success(()) }
            if let found { return try found.get() }
            await wait { parts.isEmpty && end == nil }
            if Task.isCancelled { throw ProviderError(.cancelled, detail: "reading was cancelled") }
        }
    }

    /// Hands bytes to the thread, once there is room; false when it takes no more.
    func put(_ bytes: [UInt8]) async -> Bool {
        while true {
            let done = locked { () -> Bool? in
                if isLetGo { return false }
                guard count < Self.room else { return nil }
                parts.append(bytes)
                count += bytes.count
                tell()
                return true
            }
            if let done { return done }
            await wait { count >= Self.room && !isLetGo }
            if Task.isCancelled { return false }
        }
    }

    /// Suspends until something changes, if `isNeeded` still holds.
    private func wait(while isNeeded: () -> Bool) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                locked {
                    guard isNeeded(), !Task.isCancelled else { return continuation.resume() }
                    // One reader or one writer waits at a time.
                    waiter?.resume()
                    waiter = continuation
                }
            }
        } onCancel: {
            locked { tell() }
        }
    }

    // MARK: Either side

    /// Says that no more bytes come, and why; the first word counts.
    func finish(_ result: Result<Void, ProviderError>) {
        locked {
            if end == nil { end = result }
            tell()
        }
    }

    /// Notes that no more bytes are taken.
    func letGo() {
        locked {
            isLetGo = true
            tell()
        }
    }

    /// Why no bytes came, where that was said.
    var failure: ProviderError? {
        locked {
            if case .failure(let error) = end { error } else { nil }
        }
    }
}
