internal import CFUSE
import Synchronization

/// The handlers of requests that wait and want to hear of an interrupt.
///
/// libfuse calls an interrupt function with the request's lock held, and may do so while another thread
/// answers the request. So what it is given is a number and not a pointer, and a handler whose
/// interrupt came before it was registered is called only after libfuse has let that lock go: it may
/// then answer, which frees the request.
enum Interruptions {
    typealias Token = UInt

    private enum State {
        case registering(@Sendable () -> Void)
        case firedWhileRegistering(@Sendable () -> Void)
        case registered(@Sendable () -> Void)
    }

    private struct Table {
        var last: Token = 0
        var states: [Token: State] = [:]
    }

    private static let table = Mutex(Table())

    static func register(_ handler: @escaping @Sendable () -> Void, for raw: fuse_req_t) -> Token {
        let token = table.withLock { table in
            table.last += 1
            table.states[table.last] = .registering(handler)
            return table.last
        }
        unsafe fuse_req_interrupt_func(
            raw,
            { _, data in Interruptions.fire(UInt(bitPattern: data)) },
            UnsafeMutableRawPointer(bitPattern: token)
        )
        let hasFired = table.withLock { table in
            if case .firedWhileRegistering = table.states[token] {
                table.states[token] = nil
                return true
            }
            table.states[token] = .registered(handler)
            return false
        }
        if hasFired { handler() }
        return token
    }

    static func remove(_ token: Token) {
        table.withLock { _ = $0.states.removeValue(forKey: token) }
    }

    private static func fire(_ token: Token) {
        let handler: (@Sendable () -> Void)? = table.withLock { table in
            switch table.states[token] {
            case .registering(let handler):
                table.states[token] = .firedWhileRegistering(handler)
                return nil
            case .registered(let handler):
                table.states[token] = nil
                return handler
            case .firedWhileRegistering, nil: return nil
            }
        }
        handler?()
    }
}
