import ArgumentParser
import Foundation

/// `oort log`.
struct LogCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "log",
        abstract: "Show the mount's log, with paths in place of inode numbers.",
        discussion: """
            A path is where the item is now; an item that is gone keeps its number. The log itself is \
            oort.log in the state folder.
            """
    )

    @Flag(name: [.customShort("f"), .long], help: "Go on with what is written from now on.")
    var follow = false

    @Option(
        name: [.customShort("n"), .long],
        help: ArgumentHelp("How many of the last lines.", valueName: "number")
    )
    var lines = 100

    func validate() throws {
        guard lines >= 0 else { throw ValidationError("--lines must not be below 0.") }
    }

    func run() async throws {
        let folders = try Folders()
        var tail = LogTail(path: folders.logFile)
        guard let last = tail.last(lines) else {
            throw Failure(
                "There is no log at \(folders.logFile) yet, or it cannot be read.",
                advice: "`oort mount` begins one."
            )
        }
        let names = LogNames(folders: folders)
        try await show(last, names)
        while follow {
            try await Task.sleep(for: .milliseconds(250))
            try await show(tail.next(), names)
        }
    }

    private func show(_ lines: [String], _ names: LogNames) async throws(Failure) {
        guard !lines.isEmpty else { return }
        Console.write(await names.named(lines).joined(separator: "\n"))
    }
}

/// The end of a log that grows, and is begun anew when it is full.
struct LogTail {
    private let path: String
    private var handle: FileHandle?
    private var rest = Data()

    /// The log at a path.
    init(path: String) { self.path = path }

    /// The last so many whole lines, of the file before it, too; nil when there is no log.
    mutating func last(_ count: Int) -> [String]? {
        guard open(), let data = read() else { return nil }
        var lines = whole(data)
        if lines.count < count,
            let older = try? Data(contentsOf: URL(fileURLWithPath: path + ".1"))
        {
            lines =
                older.split(separator: UInt8(ascii: "\n")).map {
                    String(decoding: $0, as: UTF8.self)
                } + lines
        }
        return Array(lines.suffix(count))
    }

    /// The whole lines that came since.
    mutating func next() -> [String] {
        var lines = read().map { whole($0) } ?? []
        if isReplaced, open(), let data = read() {
            rest = Data()
            lines += whole(data)
        }
        return lines
    }

    private mutating func open() -> Bool {
        handle = FileHandle(forReadingAtPath: path)
        return handle != nil
    }

    private func read() -> Data? {
        guard let handle else { return nil }
        return try? handle.readToEnd() ?? Data()
    }

    /// Whether another file has the path by now.
    private var isReplaced: Bool {
        guard let handle else { return true }
        var (opened, named) = (stat(), stat())
        guard unsafe stat(path, &named) == 0 else { return false }
        guard unsafe fstat(handle.fileDescriptor, &opened) == 0 else { return true }
        return opened.st_ino != named.st_ino || opened.st_dev != named.st_dev
    }

    private mutating func whole(_ data: Data) -> [String] {
        rest += data
        guard let end = rest.lastIndex(of: UInt8(ascii: "\n")) else { return [] }
        let lines = rest[..<end].split(separator: UInt8(ascii: "\n"))
        rest = Data(rest[(end + 1)...])
        return lines.map { String(decoding: $0, as: UTF8.self) }
    }
}

/// Puts paths in the place of inode numbers.
struct LogNames {
    /// The user's folders.
    let folders: Folders

    /// The lines with known paths filled in; without any if they cannot be known.
    func named(_ lines: [String]) async -> [String] {
        let inodes = Set(lines.flatMap { $0.matches(of: Self.inode).compactMap { UInt64($0.1) } })
        guard !inodes.isEmpty else { return lines }
        let paths: [String: String]
        do throws(Failure) {
            let client = ControlClient(folders: folders)
            let all = inodes.sorted()
            paths =
                client.isMountRunning
                ? try await client.paths(of: all)
                : try RestingState(folders: folders).paths(of: all)
        } catch {
            return lines
        }
        return lines.map { line in
            line.replacing(Self.inode) { match in
                paths[String(match.1)].map { "path=\"\($0)\"" } ?? String(match.0)
            }
        }
    }

    private static var inode: Regex<(Substring, Substring)> { /\binode=([0-9]+)/ }
}
