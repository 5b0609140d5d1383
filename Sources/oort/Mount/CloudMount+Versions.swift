import Foundation
import Logging
import OortCatalog
import OortContentStore
import OortModel
import OortSync

/// Earlier contents of files: listed, read, and made current again.
extension CloudMount {
    /// The most versions that are listed.
    private static let mostVersions = 2000

    func versions(_ request: VersionsRequest) async throws(Failure) -> VersionsReport {
        let (place, _, reference, history) = try await file(request.path)
        let found = try await all(history, of: reference, at: place)
        return VersionsReport(
            path: request.path,
            versions: found.map {
                VersionsReport.Version(
                    id: $0.id,
                    size: $0.size,
                    modified: $0.modifiedTime?.date,
                    author: $0.author,
                    isCurrent: $0.isCurrent
                )
            },
            cost: history.readingCost
        )
    }

    func readVersion(_ request: VersionsRequest) async throws(Failure) -> FetchedVersion {
        let (place, _, reference, history) = try await file(request.path)
        let version = try await wanted(request, history, reference, place)
        return try await fetch(version, history, reference, place)
    }

    func restoreVersion(_ request: VersionsRequest) async throws(Failure) -> RestoredVersion {
        let (place, node, reference, history) = try await file(request.path)
        try refuseReadOnly(place.account)
        try await refusePending(node, place, "nothing was restored")
        let version = try await wanted(request, history, reference, place)
        guard !version.isCurrent else {
            throw Failure(
                "Version \(TerminalText.line(version.id)) is what \(place.shown) has now.",
                advice: "Earlier ones: oort versions \(Shell.quoted(place.path))"
            )
        }
        guard history.restoresAtService else {
            let content = try await fetch(version, history, reference, place)
            return RestoredVersion(path: request.path, content: content)
        }
        do throws(ProviderError) {
            try await history.restore(version, of: reference, current: node.revision)
        } catch {
            await look(at: node, place.account)
            throw failure(
                error,
                "Version \(TerminalText.line(version.id)) of \(place.shown) was not restored",
                place.account,
                advice: error.kind == .preconditionFailed || error.isOutcomeUnknown
                    ? "Look what it has now: oort versions \(Shell.quoted(place.path))" : nil
            )
        }
        await look(at: node, place.account)
        await finishTelling()
        return RestoredVersion(path: request.path, content: nil)
    }

    func checkUnchanged(_ request: VersionsRequest) async throws(Failure) {
        let (place, node) = try existing(request.path)
        try await refusePending(node, place, "nothing was restored")
    }

    /// Has the mount show what a file is now; where that fails, it shows with the feed.
    private func look(at node: Node, _ account: MountedAccount) async {
        do throws(ProviderError) { try await account.engine.look(at: node.inode) } catch {
            logger.warning("a restored version shows later", metadata: ["cause": "\(error)"])
        }
    }

    // MARK: The file

    private func file(
        _ path: String
    ) async throws(Failure) -> (MountedPath, Node, ItemReference, any VersionHistory) {
        let (place, node) = try existing(path)
        guard node.kind == .file || node.kind == .nativeDocument else {
            throw Failure(
                "\(place.shown) is no file: only files have versions.",
                advice: "What was deleted from a folder: oort trash \(Shell.quoted(path))"
            )
        }
        // First whether there are versions at all: a person must not be told to send something first in
        // vain.
        let history = try history(of: place)
        let reference = try await reference(to: node, at: place)
        do throws(ProviderError) { try await place.account.engine.checkPerson() } catch {
            throw failure(error, "\(place.account.name) cannot be asked", place.account)
        }
        return (place, node, reference, history)
    }

    private func history(of place: MountedPath) throws(Failure) -> any VersionHistory {
        guard let history = place.account.engine.versions else {
            throw Failure(
                "\(place.account.name): \(title(of: place.account)) keeps no earlier contents of files."
            )
        }
        return history
    }

    private func all(
        _ history: any VersionHistory,
        of reference: ItemReference,
        at place: MountedPath
    ) async throws(Failure) -> [ItemVersion] {
        var found: [ItemVersion] = []
        var page: PageToken?
        var walk = PageWalk()
        do throws(ProviderError) {
            repeat {
                if let page { try walk.goOn(to: page.rawValue) }
                let answer = try await history.versions(of: reference, page: page)
                found += answer.versions
                page = answer.next
            } while page != nil && found.count < Self.mostVersions
        } catch {
            throw failure(error, "The versions of \(place.shown) cannot be read", place.account)
        }
        return found
    }

    private func wanted(
        _ request: VersionsRequest,
        _ history: any VersionHistory,
        _ reference: ItemReference,
        _ place: MountedPath
    ) async throws(Failure) -> ItemVersion {
        let id = request.version ?? ""
        let all = try await all(history, of: reference, at: place)
        guard let version = all.first(where: { $0.id.isSameText(as: id) }) else {
            throw Failure(
                "\(place.shown) has no version \(TerminalText.line(id)).",
                advice: "`oort versions \(Shell.quoted(place.path))` lists those that there are."
            )
        }
        return version
    }

    /// Refuses a wish about a file of which this machine has more than the service; `outcome` is what the
    /// person hears that became of the wish.
    ///
    /// - Throws: `Failure` when the file has changes that the service does not have.
    func refusePending(
        _ node: Node,
        _ place: MountedPath,
        _ outcome: String
    ) async throws(Failure) {
        let isPending: Bool
        do throws(CatalogError) {
            isPending = try await !catalog.pending(place.account.id, below: node.inode).isEmpty
        } catch {
            throw CatalogTrouble.failure(error, path: options.folders.catalogFile)
        }
        guard !isPending, node.staged == nil, !store.writers.isOpen(node.inode) else {
            throw Failure(
                "\(place.shown) has changes that the cloud does not have yet, or a program has it open "
                    + "for writing: \(outcome).",
                advice: "Close it and send it: oort sync \(Shell.quoted(place.path))"
            )
        }
    }

    // MARK: Its bytes

    /// The folder of the contents that were fetched for clients.
    private var fetchedVersions: String { options.folders.cache + "/versions" }

    /// Deletes what was fetched for clients of a mount that ended; before any client can ask.
    func removeFetchedVersions() {
        do { try FetchedFile.removeAll(in: fetchedVersions) } catch {
            logger.warning("fetched versions stay", metadata: ["cause": "\(error)"])
        }
    }

    /// Fetches a version's bytes into a file of the cache, which the client must delete.
    private func fetch(
        _ version: ItemVersion,
        _ history: any VersionHistory,
        _ reference: ItemReference,
        _ place: MountedPath
    ) async throws(Failure) -> FetchedVersion {
        let file = try FetchedFile(in: fetchedVersions)
        do throws(ProviderError) {
            let stream =
                version.isCurrent
                ? try await place.account.engine.currentContent(of: reference, size: version.size)
                : try await history.read(version, of: reference)
            let size = try await file.take(stream, atMost: version.size) {
                store.diskRoom > 0
            }
            guard version.size == nil || version.size == size else {
                throw ProviderError(
                    .contentDamaged,
                    detail: "\(size) of \(version.size ?? 0) bytes came"
                )
            }
            return FetchedVersion(
                file: file.path,
                size: size,
                modified: version.modifiedTime?.date
            )
        } catch {
            file.remove()
            throw failure(
                error,
                "Version \(TerminalText.line(version.id)) of \(place.shown) cannot be read",
                place.account
            )
        }
    }
}

/// A file of the cache that is handed on to another process.
private struct FetchedFile: Sendable {
    /// How long a file may stay that no client deleted: its client died.
    private static let patience: TimeInterval = 86_400

    let path: String

    /// Makes an empty file, and deletes files that clients left behind.
    init(in folder: String) throws(Failure) {
        path = "\(folder)/\(UUID().uuidString)"
        let files = FileManager.default
        do {
            try files.createDirectory(
                atPath: folder,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
            for name in try files.contentsOfDirectory(atPath: folder) {
                let old = "\(folder)/\(name)"
                let time = try? files.attributesOfItem(atPath: old)[.modificationDate] as? Date
                if let time, time.timeIntervalSinceNow < -Self.patience {
                    try? files.removeItem(atPath: old)
                }
            }
            let isMade = files.createFile(
                atPath: path,
                contents: nil,
                attributes: [.posixPermissions: 0o600]
            )
            guard isMade else { throw CocoaError(.fileWriteUnknown) }
        } catch {
            throw Failure(
                "The content has no room in \(folder): \(error).",
                advice: "Check the disk, its free space and the permissions of the folder."
            )
        }
    }

    /// Takes all such files away.
    static func removeAll(in folder: String) throws {
        let files = FileManager.default
        guard files.fileExists(atPath: folder) else { return }
        for name in try files.contentsOfDirectory(atPath: folder) {
            try files.removeItem(atPath: "\(folder)/\(name)")
        }
    }

    /// Writes a stream to its end.
    ///
    /// - Parameters:
    ///   - stream: the bytes.
    ///   - limit: how many bytes are expected; nil where that is not known.
    ///   - hasRoom: whether the disk can take more, asked now and then.
    /// - Returns: how many bytes came.
    /// - Throws: `ProviderError`, also where more bytes come than expected, or the disk is full.
    func take(
        _ stream: ByteStream,
        atMost limit: Int64?,
        hasRoom: () -> Bool
    ) async throws(ProviderError) -> Int64 {
        guard let handle = FileHandle(forWritingAtPath: path) else {
            throw ProviderError(.localContent, detail: "\(path) cannot be opened")
        }
        defer { try? handle.close() }
        var size: Int64 = 0
        var checked: Int64 = 0
        while let part = try await stream.next() {
            if Task.isCancelled { throw ProviderError(.cancelled, detail: "nobody waits for it") }
            let next = size.addingSaturating(Int64(part.count))
            if let limit, next > limit {
                throw ProviderError(.contentDamaged, detail: "more than \(limit) bytes came")
            }
            if size == 0 || next - checked >= 8 << 20 {
                guard hasRoom() else {
                    throw ProviderError(.localContent, detail: "the disk has no room for it")
                }
                checked = next
            }
            do { try handle.write(contentsOf: Data(part)) } catch {
                throw ProviderError(.localContent, detail: "\(path): \(error)")
            }
            size = next
        }
        return size
    }

    func remove() { try? FileManager.default.removeItem(atPath: path) }
}
