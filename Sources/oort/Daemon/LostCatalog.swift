import Foundation

/// What programs wrote under a catalog that is gone: bytes whose names only it knew.
///
/// A new catalog knows of none of them, counts its contents from the beginning and would have them
/// taken for rubbish; so they are moved aside, for a person to look through.
struct LostCatalog {
    private static let prefix = "staged-of-a-lost-catalog-"
    private let folders: Folders

    init(folders: Folders) { self.folders = folders }

    /// Moves staged contents aside when there is no catalog that could know them; to be called
    /// before a new one is made.
    ///
    /// - Returns: the folder in which they are now; nil when there were none.
    /// - Throws: `Failure` when they cannot be moved; a catalog must not be made then.
    func setContentsAside(now: Date = Date()) throws(Failure) -> String? {
        guard !hasCatalog, hasStagedContents else { return nil }
        let time = now.formatted(
            Date.ISO8601FormatStyle(dateSeparator: .omitted, timeSeparator: .omitted)
        )
        let place = "\(folders.state)/\(Self.prefix)\(time)"
        do {
            try FileManager.default.moveItem(atPath: folders.stagedFolder, toPath: place)
        } catch {
            throw Failure(
                "The catalog is gone, and what it had not uploaded, in \(folders.stagedFolder), "
                    + "cannot be moved to \(place): \(error.localizedDescription)",
                advice: "Move that folder to a safe place and mount again."
            )
        }
        return place
    }

    /// The folders with contents that were moved aside and that nobody has removed since.
    var foldersAside: [String] {
        let names = try? FileManager.default.contentsOfDirectory(atPath: folders.state)
        return (names ?? []).filter { $0.hasPrefix(Self.prefix) }.sorted()
            .map { "\(folders.state)/\($0)" }
    }

    /// SQLite takes an empty file for a new database; of one that cannot be looked at it will say so.
    private var hasCatalog: Bool {
        do {
            let attributes = try FileManager.default.attributesOfItem(atPath: folders.catalogFile)
            return (attributes[.size] as? NSNumber)?.int64Value ?? 0 > 0
        } catch {
            return (error as? CocoaError)?.code != .fileReadNoSuchFile
        }
    }

    /// Contents lie spread over folders; beside these lies only what is of the machine.
    private var hasStagedContents: Bool {
        let paths = FileManager.default.enumerator(atPath: folders.stagedFolder)
        while let path = paths?.nextObject() as? String {
            let isFile = paths?.fileAttributes?[.type] as? FileAttributeType == .typeRegular
            if isFile, path.contains("/") { return true }
        }
        return false
    }
}
