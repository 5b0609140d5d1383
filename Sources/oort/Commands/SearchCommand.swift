import ArgumentParser
import Foundation
import OortCatalog
import OortModel
import Synchronization

/// `oort search`.
struct SearchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "search",
        abstract: "Find files and folders in all clouds.",
        discussion: """
            All words must be found: in the name or its description or, but for one of them, in the \
            names of the folders above. Case, accents and punctuation do not count; a word of \
            three letters or more is found inside of others, too. The best comes first.

            With --content the services that search inside files are asked as well, and what \
            they find follows as it arrives. Any program finds the same in the folder \
            .search/WORDS of the mount. Without a mount what was known last is searched.

            Exit codes: 0 something was found, 1 nothing was, or the search failed, 2 wrong usage.
            """
    )

    @Argument(help: "What to look for.")
    var words: [String]

    @Option(
        name: .customLong("in"),
        help: ArgumentHelp("Only below this folder of the mount.", valueName: "path"),
        completion: .directory
    )
    var folder: String?

    private static let kinds = SearchKind.allCases.map(\.rawValue)

    @Option(
        help: ArgumentHelp(
            "Only what is of this kind: \(kinds.joined(separator: ", ")).",
            valueName: "kind"
        ),
        completion: .list(kinds),
        transform: { text in
            guard let kind = SearchKind(rawValue: text) else {
                throw ValidationError("--kind must be one of: \(kinds.joined(separator: ", ")).")
            }
            return kind
        }
    )
    var kind: SearchKind?

    @Option(
        help: ArgumentHelp(
            "Only what was modified since: a length of time such as 7d, or a date such as 2026-03-31.",
            valueName: "time"
        )
    )
    var newer: SearchMoment?

    @Option(help: ArgumentHelp("Only files of more bytes, such as 10M.", valueName: "size"))
    var larger: ByteSize?

    @Flag(help: "Ask the services that search inside files, too.")
    var content = false

    @Option(help: ArgumentHelp("The most results.", valueName: "number"))
    var limit = SearchRequest.usualLimit

    @Flag(help: "Print JSON.")
    var json = false

    func validate() throws {
        guard !words.isEmpty else { throw ValidationError("Name what to look for.") }
        guard (1...SearchRequest.mostResults).contains(limit) else {
            throw ValidationError("--limit must be from 1 to \(SearchRequest.mostResults).")
        }
    }

    func run() async throws {
        let folders = try Folders(holding: folder)
        let client = ControlClient(folders: folders)
        var request = SearchRequest(
            words: words,
            kind: kind,
            since: newer?.date(before: Date()),
            larger: larger?.bytes,
            content: content,
            limit: limit
        )
        let shown = ShownResults(json: json)
        if client.isMountRunning {
            request.in = folder.map { MountPoint($0).path }
            try await client.search(request) { shown.show($0) }
        } else {
            try await RestingState(folders: folders).search(
                request,
                in: folder,
                usuallyAt: try Surroundings(folders: folders).usualMountPoint
            ) { shown.show($0) }
        }
        try shown.finish(words: words)
    }
}

/// A moment as people write it: a length of time before now, or a date.
struct SearchMoment: Hashable, Sendable, ExpressibleByArgument {
    private enum Form: Hashable { case before(Double), at(Date) }

    private let form: Form

    /// Reads `7d`, `36h`, `2026-03-31` (here, at midnight) or a time of RFC 3339; nil for anything else.
    init?(argument text: String) {
        if let time = Timestamp(rfc3339: text) {
            form = .at(time.date)
            return
        }
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        if parts.count == 3 {
            var components = DateComponents()
            let calendar = Calendar(identifier: .gregorian)
            components.calendar = calendar
            components.timeZone = .current
            guard parts[0].count == 4, let year = Int(parts[0]), let month = Int(parts[1]),
                let day = Int(parts[2]), year > 0
            else { return nil }
            (components.year, components.month, components.day) = (year, month, day)
            guard components.isValidDate, let date = calendar.date(from: components) else {
                return nil
            }
            form = .at(date)
            return
        }
        guard let last = text.last, last.isLetter, let span = TimeSpan(text) else { return nil }
        form = .before(span.seconds)
    }

    /// The moment, as seen from another one.
    func date(before now: Date) -> Date {
        switch form {
        case .before(let seconds): now.addingTimeInterval(-seconds)
        case .at(let date): date
        }
    }
}

/// What a search says to a person.
enum SearchWords {
    /// Of a folder that is named and is not there.
    static func notThere(_ path: String) -> Failure {
        Failure("\(TerminalText.line(path)) is not there.", advice: "Check the spelling.")
    }

    /// Of a file that is named in place of a folder.
    static func notAFolder(_ path: String) -> Failure {
        Failure(
            "\(TerminalText.line(path)) is not a folder.",
            advice: "Name a folder to search in."
        )
    }

    /// A result in a line: size, time, path.
    static func line(_ result: SearchResult) -> String {
        let size = result.isFolder ? "folder" : ByteSize(bytes: result.size).description
        let time = result.modified.formatted(
            Date.ISO8601FormatStyle(dateTimeSeparator: .space, timeZone: .current)
                .year().month().day().time(includingFractionalSeconds: false)
        )
        let padding = String(repeating: " ", count: max(10 - size.count, 0))
        return "\(padding)\(size)  \(time)  \(TerminalText.line(result.path))"
    }
}

/// Shows what is found as it arrives.
final class ShownResults: Sendable {
    private struct State {
        var results: [SearchResult] = []
        var notes: [String] = []
        var isCut = false
    }

    private let json: Bool
    private let state = Mutex(State())

    init(json: Bool) { self.json = json }

    /// A line of the answer.
    func show(_ line: SearchLine) {
        if let result = line.result {
            state.withLock { $0.results.append(result) }
            if !json { Console.write(SearchWords.line(result)) }
        }
        if let note = line.note {
            state.withLock { $0.notes.append(note) }
            if !json { Console.error(note) }
        }
        if let end = line.end { state.withLock { $0.isCut = end.isCut } }
    }

    /// Says how it ended.
    ///
    /// - Throws: `ExitCode` 1 where nothing was found.
    func finish(words: [String]) throws {
        let state = state.withLock { $0 }
        if json {
            Console.write(
                json: try ControlCoding.encode(
                    SearchReport(results: state.results, notes: state.notes, isCut: state.isCut),
                    pretty: true
                )
            )
        } else if state.isCut {
            Console.error("There may be more: name another word, or more with --limit.")
        }
        guard state.results.isEmpty else { return }
        if !json { Console.error("Nothing was found for \(SearchRequest.shown(words)).") }
        throw ExitCode(1)
    }
}

/// All of a search as JSON.
struct SearchReport: Codable, Hashable, Sendable {
    /// What was found, names first.
    var results: [SearchResult]
    /// What a person should know of accounts and the index.
    var notes: [String]
    /// Whether there may be more.
    var isCut: Bool
}
