import OortModel
import OortProcesses
import SwiftSFTP

/// What lies in a folder at the server, as SFTP or the shell says.
struct ListedEntry: Hashable, Sendable {
    var name: SFTPPath
    /// Those of a link itself.
    var attributes: SFTPAttributes
    /// Where a link leads.
    var target: SFTPPath?
}

/// A folder that the shell listed.
struct ListedFolder: Hashable, Sendable {
    /// As they were before the first entry was read.
    var attributes: SFTPAttributes
    var entries: [ListedEntry] = []
    /// Whether that is all, as SFTP would say it.
    var isWhole = true
}

/// Many folders in one go, by `find` of GNU.
extension SSHShell {
    /// What became of a listing.
    enum Listing: Hashable, Sendable {
        /// The folders, in the order in which they were asked for.
        case done([ListedFolder])
        /// No command runs there, or no `find` that prints attributes.
        case noShell
        /// Something could not be read, or changed meanwhile.
        case failed
    }

    /// The most bytes that a listing may have.
    static let mostOutput = 32 << 20

    /// Lists folders, and prints `mark` with 42 before what it found, and with 43 after, if all of it could
    /// be read.
    static func listingScript(_ folders: [SFTPPath], mark: String) -> [UInt8] {
        // Three texts of each entry, each with a zero at its end, which no name has.
        let form = #"%d %y %m %U %G %s %T@\0%P\0%l\0"#
        var script = Array(
            """
            LC_ALL=C; export LC_ALL
            find / -maxdepth 0 -printf '' >/dev/null 2>&1 && {
            echo \(mark)$((6*7))
            find -P
            """.utf8
        )
        for folder in folders { script += [0x20] + quoted(folder) }
        script += Array(
            """
             -maxdepth 1 -printf '\(form)' && echo \(mark)$((6*7+1))
            } 2>/dev/null | head -c \(mostOutput)

            """.utf8
        )
        return script
    }

    /// What a script of `listingScript` found in `count` folders.
    static func listed(_ output: [UInt8], mark: String, count: Int) -> Listing {
        // A login's shell may have said something before, and may do so after.
        let greeting = output.prefix(1 << 16)
        guard let begin = greeting.firstRange(of: Array("\(mark)42\n".utf8))?.upperBound else {
            return .noShell
        }
        let farewell = output[begin...].suffix(1 << 12)
        guard let end = farewell.firstRange(of: Array("\(mark)43\n".utf8))?.lowerBound else {
            return .failed
        }
        var folders: [ListedFolder] = []
        var rest = output[begin..<end]
        while !rest.isEmpty {
            guard let words = text(&rest), let name = text(&rest), let target = text(&rest) else {
                return .failed
            }
            let attributes = attributes(words)
            if words.starts(with: "0 ".utf8) {
                var folder = ListedFolder(attributes: attributes ?? SFTPAttributes())
                folder.isWhole = attributes != nil
                folders.append(folder)
                continue
            }
            guard !folders.isEmpty, let name = try? SFTPPath(name: name) else { return .failed }
            guard let attributes else {
                folders[folders.count - 1].isWhole = false
                continue
            }
            var entry = ListedEntry(name: name, attributes: attributes)
            if attributes.kind == .link {
                guard !target.isEmpty, let path = try? SFTPPath(target) else { return .failed }
                entry.target = path
            }
            folders[folders.count - 1].entries.append(entry)
        }
        return folders.count == count ? .done(folders) : .failed
    }

    /// The text before the next zero.
    private static func text(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard let end = rest.firstIndex(of: 0) else { return nil }
        defer { rest = rest[(end + 1)...] }
        return rest[..<end]
    }

    /// The attributes of an entry as SFTP gives them; nil where they cannot be the same.
    private static func attributes(_ words: ArraySlice<UInt8>) -> SFTPAttributes? {
        let parts = words.split(separator: 0x20, omittingEmptySubsequences: false)
            .map { String(decoding: $0, as: UTF8.self) }
        guard parts.count == 7, let type = types[parts[1]],
            let mode = UInt32(parts[2], radix: 8), let user = UInt32(parts[3]),
            let group = UInt32(parts[4]), let size = UInt64(parts[5]),
            let seconds = parts[6].split(separator: ".").first.flatMap({ Int64($0) }), seconds >= 0
        else { return nil }
        var attributes = SFTPAttributes()
        attributes.size = size
        attributes.owner = SFTPAttributes.Owner(user: user, group: group)
        attributes.mode = type | mode
        // The protocol's times end in 2106, and OpenSSH's server cuts later ones.
        let time = UInt32(truncatingIfNeeded: seconds)
        attributes.times = SFTPAttributes.Times(accessed: time, modified: time)
        return attributes
    }

    /// The type bits of a mode for the letters of `find`.
    private static let types: [String: UInt32] = [
        "f": 0o100000, "d": 0o040000, "l": 0o120000, "p": 0o010000, "s": 0o140000, "b": 0o060000,
        "c": 0o020000,
    ]
}
