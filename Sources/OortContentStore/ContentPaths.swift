import Foundation
import OortCatalog

/// Where contents lie on the disk: named by number, spread over 256 folders, each of which is made
/// with the first file in it (`DiskFile`).
struct ContentPaths: Sendable {
    /// Folder of the cached contents, in the cache.
    let cacheFolder: String
    /// The folder that has the one of the staged contents.
    let stateFolder: String

    /// Folder of the staged contents, in the state.
    var stagedFolder: String { stateFolder + "/staged" }

    /// The file of a cached content.
    func cached(_ id: ContentID) -> String { "\(cacheFolder)/\(Self.spread(id))" }

    /// The file of a staged content.
    func staged(_ id: ContentID) -> String { "\(stagedFolder)/\(Self.spread(id))" }

    /// The folder that has the file of a staged content.
    func folder(ofStaged id: ContentID) -> String {
        "\(stagedFolder)/\(Self.hex(id.rawValue & 0xff))"
    }

    /// The sidecar of a staged content that is an overlay.
    func journal(_ id: ContentID) -> String { staged(id) + Self.journalEnding }

    /// What a sidecar's name has besides its content's.
    static let journalEnding = ".journal"

    /// The file that tells which run of the machine used the contents last.
    var boot: String { "\(stagedFolder)/boot" }

    /// The file by which the catalog knows one of the two folders.
    func stamp(of folder: String) -> String { "\(folder)/stamp" }

    /// A file that is being made and belongs to nobody yet.
    func temporary(_ number: UInt64) -> String { "\(stagedFolder)/temporary-\(number)" }

    /// A file by which the disk is tried.
    var probe: String { "\(stagedFolder)/temporary-probe" }

    /// Whether a file of the staged contents' folder is one that was being made.
    func isTemporary(_ path: String) -> Bool { path.hasPrefix("\(stagedFolder)/temporary-") }

    /// What the names of the folders begin with that have staged contents which no catalog knows.
    private static let asidePrefix = "staged-of-a-lost-catalog-"

    /// A folder for staged contents that the catalog does not know.
    func aside(at time: Date) -> String {
        let style = Date.ISO8601FormatStyle(dateSeparator: .omitted, timeSeparator: .omitted)
        return "\(stateFolder)/\(Self.asidePrefix)\(time.formatted(style))"
    }

    /// The folders with such contents that nobody has removed since.
    ///
    /// - Throws: `.disk` when the folder cannot be listed.
    func foldersAside() throws(ContentError) -> [String] {
        let names: [String]
        do { names = try FileManager.default.contentsOfDirectory(atPath: stateFolder) } catch {
            throw .disk(code: 0, detail: "\(error)")
        }
        return names.filter { $0.hasPrefix(Self.asidePrefix) }.sorted()
            .map { "\(stateFolder)/\($0)" }
    }

    /// Makes the two folders.
    func prepare() throws(ContentError) {
        do {
            for folder in [cacheFolder, stagedFolder] {
                try FileManager.default.createDirectory(
                    atPath: folder,
                    withIntermediateDirectories: true,
                    attributes: [.posixPermissions: 0o700]
                )
            }
        } catch { throw .disk(code: 0, detail: "\(error)") }
    }

    /// The files of a folder, with the content that each belongs to (nil: to none that we know).
    func files(in folder: String) -> [(path: String, id: ContentID?)] {
        guard let enumerator = FileManager.default.enumerator(atPath: folder) else { return [] }
        var files: [(String, ContentID?)] = []
        for case let name as String in enumerator {
            guard enumerator.fileAttributes?[.type] as? FileAttributeType != .typeDirectory
            else { continue }
            let last = name.split(separator: "/").last ?? ""
            let number = last.split(separator: ".").first.flatMap { Int64($0, radix: 16) }
            files.append(("\(folder)/\(name)", number.map { ContentID($0) }))
        }
        return files
    }

    private static func spread(_ id: ContentID) -> String {
        "\(hex(id.rawValue & 0xff))/\(String(id.rawValue, radix: 16))"
    }

    private static func hex(_ number: Int64) -> String {
        let text = String(number, radix: 16)
        return text.utf8.count < 2 ? "0" + text : text
    }
}
