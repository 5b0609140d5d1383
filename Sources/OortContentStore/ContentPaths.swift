import Foundation
import OortCatalog

/// Where contents lie on the disk: named by number, spread over 256 folders.
struct ContentPaths: Sendable {
    /// Folder of the cached contents, in the cache.
    let cacheFolder: String
    /// Folder of the staged contents, in the state.
    let stagedFolder: String

    /// The file of a cached content.
    func cached(_ id: ContentID) -> String { "\(cacheFolder)/\(Self.spread(id))" }

    /// The file of a staged content.
    func staged(_ id: ContentID) -> String { "\(stagedFolder)/\(Self.spread(id))" }

    /// The folder that has the file of a staged content.
    func folder(ofStaged id: ContentID) -> String {
        "\(stagedFolder)/\(Self.hex(id.rawValue & 0xff))"
    }

    /// The sidecar of a staged content that is an overlay.
    func journal(_ id: ContentID) -> String { staged(id) + ".journal" }

    /// The file that tells which run of the machine used the contents last.
    var boot: String { "\(stagedFolder)/boot" }

    /// A file that is being made and belongs to nobody yet.
    func temporary(_ number: UInt64) -> String { "\(stagedFolder)/temporary-\(number)" }

    /// Makes all folders.
    func prepare() throws(ContentError) {
        do {
            for folder in [cacheFolder, stagedFolder] {
                for number in 0..<256 {
                    try FileManager.default.createDirectory(
                        atPath: "\(folder)/\(Self.hex(Int64(number)))",
                        withIntermediateDirectories: true,
                        attributes: [.posixPermissions: 0o700]
                    )
                }
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
