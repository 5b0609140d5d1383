import ArgumentParser
import Foundation

/// `oort trash`.
struct TrashCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trash",
        abstract: "List what was deleted and can come back.",
        discussion: """
            Lists the trash of each service, the newest first, with the path where each thing lay. \
            `oort restore` brings it back by that path, or by the id where there are several.
            """
    )

    @Argument(help: "Only what lay at or below this path (default: all accounts).")
    var path: String?

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
        let report = try await ControlClient(folders: try Folders(holding: path))
            .trash(TrashRequest(path: path.map { MountPoint($0).path }))
        if json {
            Console.write(json: try ControlCoding.encode(report, pretty: true))
        } else {
            Console.write(TrashText.text(report, below: path))
        }
        if report.entries.isEmpty, report.listed == nil, !report.notes.isEmpty {
            throw ExitCode.failure
        }
    }
}

/// `oort restore`.
struct RestoreCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "Bring back what was deleted, or an earlier version of a file.",
        discussion: """
            Without --version it brings back what lay at PATH from the service's trash, a folder with \
            all that lay in it. It never replaces anything: where the name is taken, --to names \
            another place in the same account.

            With --version the file gets that content again as a new version, and what it has now \
            becomes an earlier one. With --to, the version is written to that file instead, anywhere \
            on this machine, and nothing changes in the cloud.
            """
    )

    @Argument(help: "Where it lay, or an id that `oort trash` lists (ACCOUNT:ID).")
    var target: String

    @Option(help: ArgumentHelp("A version that `oort versions` lists.", valueName: "id"))
    var version: String?

    @Option(
        help: ArgumentHelp("Where it is to be, if not where it lay.", valueName: "path"),
        completion: .file()
    )
    var to: String?

    func run() async throws {
        let client = ControlClient(folders: try Folders(holding: target))
        let path = MountPoint(target).path
        guard let version else {
            let report = try await client.restore(
                RestoreRequest(target: target, path: path, to: to.map { MountPoint($0).path })
            )
            return Console.write(TrashText.text(report))
        }
        let wish = VersionsRequest(path: path, version: version)
        if let to {
            let content = try await client.readVersion(wish)
            let file = MountPoint(to).path
            let place = try VersionFile(content).put(at: file, namedAs: path)
            return Console.write(
                "Version \(TerminalText.line(version)) is at \(TerminalText.line(place))."
            )
        }
        // From before: what is saved while the version is on its way must not be lost.
        let before = FileIdentity(path)
        let restored = try await client.restoreVersion(wish)
        guard let content = restored.content else {
            return Console.write(
                "\(TerminalText.line(path)) is version \(TerminalText.line(version)) again."
            )
        }
        try await VersionFile(content).replace(path, as: before) { () async throws(Failure) in
            try await client.checkUnchanged(VersionsRequest(path: path))
        }
        Console.write(
            "\(TerminalText.line(path)) has the content of version \(TerminalText.line(version)) "
                + "again, and is on its way to the cloud."
        )
    }
}

/// `oort versions`.
struct VersionsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "versions",
        abstract: "List the contents that a file had.",
        discussion: """
            `oort restore PATH --version ID` makes one of them current again; with --to it is \
            written to a file beside, and nothing changes in the cloud.
            """
    )

    @Argument(help: "The file.", completion: .file())
    var path: String

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
        let report = try await ControlClient(folders: try Folders(holding: path))
            .versions(VersionsRequest(path: MountPoint(path).path))
        if json {
            Console.write(json: try ControlCoding.encode(report, pretty: true))
        } else {
            Console.write(VersionsText.text(report))
        }
    }
}

/// By what a save of a file is seen from outside.
struct FileIdentity: Equatable {
    private let status: stat

    /// The identity of the file at a path; nil where none is.
    init?(_ path: String) {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else { return nil }
        self.status = status
    }

    /// Permissions, without the kind.
    var mode: mode_t { status.st_mode & 0o7777 }

    /// Gives another file the permissions, and where that is allowed the owner.
    ///
    /// - Returns: whether the permissions are set.
    func apply(to file: CInt) -> Bool {
        // Only root may give files away; for others the owner is the same already.
        _ = fchown(file, status.st_uid, status.st_gid)
        return fchmod(file, mode) == 0
    }

    static func == (one: Self, other: Self) -> Bool {
        let (one, other) = (one.status, other.status)
        return one.st_ino == other.st_ino && one.st_size == other.st_size
            && one.st_mtim.tv_sec == other.st_mtim.tv_sec
            && one.st_mtim.tv_nsec == other.st_mtim.tv_nsec
    }
}

/// A version's bytes in a file of the cache, which goes when they are where they belong.
struct VersionFile {
    /// How many saves in a row are distinguished.
    private static let mostSaves = 100

    private let content: FetchedVersion

    init(_ content: FetchedVersion) { self.content = content }

    /// Puts them at a path where nothing is yet; into a folder under the name of `original`.
    ///
    /// - Returns: the path of the file.
    /// - Throws: `Failure` when something is there, or it cannot be written.
    @discardableResult
    func put(at path: String, namedAs original: String) throws(Failure) -> String {
        var isFolder: ObjCBool = false
        var target = path
        if unsafe FileManager.default.fileExists(atPath: path, isDirectory: &isFolder),
            isFolder.boolValue
        {
            target += "/" + (original as NSString).lastPathComponent
        }
        guard FileIdentity(target) == nil else { throw Self.notMade(target, EEXIST) }
        let beside = Self.nameBeside(target)
        let cleaning = CleaningUp([content.file, beside])
        defer { cleaning.end() }
        // Others may read it only where they may read the file itself.
        let mode = (FileIdentity(original)?.mode ?? 0o600) & 0o777
        try copy(to: beside, for: target, mode: mode, like: nil)
        // Under its name it is whole, whatever ended the command before.
        guard FileExchange.moveToFreeName(beside, target) else {
            throw Self.notMade(target, errno)
        }
        return target
    }

    /// A name that nothing has, beside a file and short, since the file's own may be as long as names can be.
    private static func nameBeside(_ path: String) -> String {
        let number = String(UInt32.random(in: 0 ... .max), radix: 16)
        return (path as NSString).deletingLastPathComponent + "/.oort-restored-\(number)"
    }

    private static func notMade(_ path: String, _ code: CInt) -> Failure {
        Failure(
            "\(TerminalText.line(path)) cannot be made: \(POSIXText.of(code)).",
            advice: "Nothing was changed; name another place with --to."
        )
    }

    /// Puts the content in place of a file's as an editor does: beside it first, then over it in one step.
    ///
    /// `before` is the file's state when the version was asked for; `check` asks whether it has changes
    /// that the cloud does not have.
    ///
    /// - Throws: `Failure`; the file is then as it was, or as another program saved it meanwhile.
    func replace(
        _ path: String,
        as before: FileIdentity?,
        _ check: () async throws(Failure) -> Void
    ) async throws(Failure) {
        let beside = Self.nameBeside(path)
        let cleaning = CleaningUp([content.file, beside])
        defer { cleaning.end() }
        try copy(to: beside, for: path, mode: 0o600, like: before)
        do throws(Failure) {
            try await check()
            guard let before, FileIdentity(path) == before else {
                throw Failure(
                    "\(TerminalText.line(path)) was changed meanwhile: nothing was restored.",
                    advice: "Look what it has now: oort versions \(Shell.quoted(path))"
                )
            }
        } catch {
            _ = unsafe unlink(beside)
            throw error
        }
        let new = FileIdentity(beside)
        // From here on the file beside it may be one that another program saved a moment ago.
        cleaning.keep(beside)
        do throws(Failure) {
            try exchange(beside, path)
        } catch {
            _ = unsafe unlink(beside)
            throw error
        }
        // The file that was replaced at that moment is beside it now.
        if FileIdentity(beside) != before { try takeBack(beside, new, from: path) }
        _ = unsafe unlink(beside)
    }

    /// Gives a path back to the file that another program saved there between the comparison and the
    /// exchange.
    ///
    /// - Throws: `Failure`, always; afterwards only what could not be given back lies beside it.
    private func takeBack(
        _ beside: String,
        _ new: FileIdentity?,
        from path: String
    ) throws(Failure) {
        var (put, got) = (new, FileIdentity(beside))
        for _ in 0..<Self.mostSaves {
            guard FileExchange.exchange(beside, path) else {
                throw Failure(
                    "\(TerminalText.line(path)) was changed meanwhile, and what it had lies in "
                        + "\(TerminalText.line(beside)) now: \(POSIXText.ofErrno()).",
                    advice: "Move it back: mv \(Shell.quoted(beside)) \(Shell.quoted(path))"
                )
            }
            // Else it was saved once more, and that is the newest.
            let next = FileIdentity(beside)
            if next == put { break }
            (put, got) = (got, next)
        }
        _ = unsafe unlink(beside)
        throw Failure(
            "\(TerminalText.line(path)) was changed meanwhile: nothing was restored.",
            advice: "Look what it has now: oort versions \(Shell.quoted(path))"
        )
    }

    /// Has two files change their places in one step.
    private func exchange(_ one: String, _ other: String) throws(Failure) {
        guard FileExchange.exchange(one, other) else {
            throw Failure(
                "\(TerminalText.line(other)) cannot be replaced: \(POSIXText.ofErrno()).",
                advice: "It is as it was; `oort status` says how the account is."
            )
        }
    }

    /// Copies the bytes to a path where nothing is; the new file has its permissions before it has any
    /// bytes.
    ///
    /// - Parameters:
    ///   - path: where they come.
    ///   - name: the file that a person hears of.
    ///   - mode: the permissions, of which the process's mask takes some away.
    ///   - original: a file whose owner and permissions it gets in the place of these.
    /// - Throws: `Failure`; nothing is left of it then.
    private func copy(
        to path: String,
        for name: String,
        mode: mode_t,
        like original: FileIdentity?
    ) throws(Failure) {
        // Never over anything.
        let target = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        guard target >= 0 else { throw Self.notMade(name, errno) }
        let handle = FileHandle(fileDescriptor: target, closeOnDealloc: false)
        do {
            if let original, !original.apply(to: target) { throw CocoaError(.fileWriteUnknown) }
            guard let source = FileHandle(forReadingAtPath: content.file) else {
                throw CocoaError(.fileReadNoSuchFile)
            }
            defer { try? source.close() }
            while let part = try source.read(upToCount: 1 << 20), !part.isEmpty {
                try handle.write(contentsOf: part)
            }
            // Where a program's close fails the bytes are not safe.
            guard close(target) == 0 else { throw CocoaError(.fileWriteUnknown) }
        } catch {
            _ = unsafe unlink(path)
            throw Failure(
                "\(TerminalText.line(name)) could not be written.",
                advice: "Nothing is left of it; look at the room on the disk."
            )
        }
        guard let modified = content.modified else { return }
        try? FileManager.default.setAttributes([.modificationDate: modified], ofItemAtPath: path)
    }
}

/// What was deleted, in words.
enum TrashText {
    /// What was deleted; `path` is where all of it lay, if a person named that.
    static func text(_ report: TrashReport, below path: String?) -> String {
        var lines = report.entries.flatMap { Self.lines(of: $0) }
        if report.entries.isEmpty, !report.isCut, report.listed != nil || report.notes.isEmpty {
            lines.append(
                path.map {
                    "The trash has nothing that lay at or below \(TerminalText.line($0))."
                } ?? "The trash is empty."
            )
        }
        if report.isCut {
            lines.append("There is more: name a folder to see what lay in it: oort trash PATH")
        }
        lines += report.notes.map { TerminalText.line($0) }
        return lines.joined(separator: "\n")
    }

    static func text(_ report: RestoreReport) -> String {
        var lines = ["\(TerminalText.line(report.path)) is back."]
        if !report.isShown { lines.append("It shows in the mount a little later.") }
        if report.others > 0 {
            lines.append("Older ones of this path, \(report.others), stay in the trash: oort trash")
        }
        if report.isByFiles == true {
            lines.append(
                "What had been deleted in it before that, if anything, stays in the trash: oort trash "
                    + TerminalText.line(Shell.quoted(report.path))
            )
        }
        return lines.joined(separator: "\n")
    }

    private static func lines(of entry: TrashedItem) -> [String] {
        let time = entry.deleted.map { StatusText.moment($0) } ?? "time not known"
        let what = entry.size.map { "\(ByteSize(bytes: $0))" } ?? entry.kind ?? "file or folder"
        let path = entry.path ?? "\(entry.name) (its folder is not there any more)"
        return [
            "\(time)  \(what)  \(TerminalText.line(path))",
            "    \(TerminalText.line(entry.id))",
        ]
    }
}

/// Versions in words.
enum VersionsText {
    static func text(_ report: VersionsReport) -> String {
        guard !report.versions.isEmpty else { return "The service keeps no version of it." }
        var lines = report.versions.map { version in
            let time = version.modified.map { StatusText.moment($0) } ?? "time not known"
            let size = version.size.map { "\(ByteSize(bytes: $0))" } ?? "size not known"
            let author = version.author.map { "  \(TerminalText.line($0))" } ?? ""
            return "\(time)  \(size)  \(TerminalText.line(version.id))\(author)"
                + (version.isCurrent ? "  (current)" : "")
        }
        if let cost = report.cost { lines.append(cost) }
        return lines.joined(separator: "\n")
    }
}
