import Dispatch
import Foundation
import Synchronization

/// Takes files away when a command is over, by whatever it ends: a signal (Ctrl-C), too.
final class CleaningUp {
    private let paths: Paths
    private let sources: [any DispatchSourceSignal]

    /// Takes these files away at `end`, and when a signal ends the command before that.
    init(_ list: [String]) {
        let paths = Paths(list)
        self.paths = paths
        sources = [SIGINT, SIGTERM, SIGHUP].map { number in
            _ = signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                paths.remove()
                // The process ends by the signal, as the program that started the command expects.
                _ = signal(number, SIG_DFL)
                _ = kill(getpid(), number)
            }
            source.resume()
            return source
        }
    }

    /// Leaves a file where it is, whatever ends the command: it holds a person's work by now.
    func keep(_ path: String) { paths.keep(path) }

    /// Takes the files away that are left; signals do what they did before.
    func end() {
        paths.remove()
        for source in sources { source.cancel() }
        for number in [SIGINT, SIGTERM, SIGHUP] { _ = signal(number, SIG_DFL) }
    }
}

/// The files to be deleted, until they are to be kept.
private final class Paths: Sendable {
    private let list: Mutex<[String]>

    init(_ list: [String]) { self.list = Mutex(list) }

    func keep(_ path: String) { list.withLock { $0.removeAll { $0 == path } } }

    func remove() {
        list.withLock { list in
            for path in list { _ = unsafe unlink(path) }
            list = []
        }
    }
}
