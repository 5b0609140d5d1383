import Dispatch
import Foundation

/// Takes files away when a command is over, by whatever it ends: a signal (Ctrl-C), too.
final class CleaningUp {
    private let paths: [String]
    private let sources: [any DispatchSourceSignal]

    /// Takes these files away at `end`, and when a signal ends the command before that.
    init(_ paths: [String]) {
        self.paths = paths
        sources = [SIGINT, SIGTERM, SIGHUP].map { number in
            _ = signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                for path in paths { _ = unsafe unlink(path) }
                // The end is that of the signal, as whoever started the command expects.
                _ = signal(number, SIG_DFL)
                _ = kill(getpid(), number)
            }
            source.resume()
            return source
        }
    }

    /// Takes the files away that are left; signals do what they did before.
    func end() {
        for path in paths { _ = unsafe unlink(path) }
        for source in sources { source.cancel() }
        for number in [SIGINT, SIGTERM, SIGHUP] { _ = signal(number, SIG_DFL) }
    }
}
