import Dispatch
import Foundation

/// The window of the terminal that standard output goes to.
enum TerminalWindow {
    /// Its columns and rows; 80 and 24 where the terminal does not say.
    static var size: (columns: Int, rows: Int) {
        var size = winsize()
        guard unsafe ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0,
            size.ws_row > 0
        else { return (80, 24) }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// The moments to draw it anew: at once, every second, and when its size changes.
    static func moments() -> AsyncStream<Void> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let resized = ResizeSignal { continuation.yield() }
            // Owned by the stream, whose end cancels it.
            let clock = Task {
                repeat {
                    continuation.yield()
                } while (try? await Task.sleep(for: .seconds(1))) != nil
            }
            continuation.onTermination = { _ in
                resized.cancel()
                clock.cancel()
            }
        }
    }
}

/// Hears of SIGWINCH.
///
/// Unchecked Sendable because any thread may cancel a dispatch source.
private final class ResizeSignal: @unchecked Sendable {
    private let source = DispatchSource.makeSignalSource(signal: SIGWINCH, queue: .global())

    init(_ body: @escaping @Sendable () -> Void) {
        source.setEventHandler(handler: body)
        source.activate()
    }

    func cancel() { source.cancel() }
}
