import Foundation
public import OortModel
import OortTransport

extension OneDriveProvider {
    // MARK: Folders

    public func createFolder(_ folder: NewFolder) async throws(ProviderError) -> Item {
        let parent = try OneDriveItemID(folder.parent.id)
        let request = try api.request(
            "POST",
            "\(parent.target.path)/children",
            json: try change(creating: folder)
        )
        let wire = try await withoutFalseConflicts { () async throws(ProviderError) in
            try await api.send(request, for: DriveItemWire.self, about: .parent)
        }
        return try known(wire, drive: parent.target.drive)
    }

    /// The body that creates a folder, its name checked.
    func change(creating folder: NewFolder) throws(ProviderError) -> ItemChangeWire {
        let parent = try OneDriveItemID(folder.parent.id)
        memory.learn(parent)
        try OneDriveNames.check(
            folder.name,
            kind: .folder,
            in: folder.parent,
            isPersonal: OneDriveSpelling.isPersonal(drive: parent.target.drive)
        )
        return ItemChangeWire(
            name: folder.name,
            fileSystemInfo: folder.modifiedTime.map { FileSystemInfoWire(modified: $0) },
            folder: .init(),
            conflictBehavior: .fail
        )
    }

    // MARK: Move

    public func move(_ move: Move) async throws(ProviderError) -> Item {
        let id = try OneDriveItemID(move.item.id)
        var change = try change(for: move)
        if change.fileSystemInfo == nil {
            // Without a time the service would set it to now.
            let wire = try await api.item(at: id.entry)
            change.fileSystemInfo = OneDriveItems.modifiedTime(wire)
                .map { FileSystemInfoWire(modified: $0) }
        }
        do throws(ProviderError) {
            return try known(
                try await patch(id.entry, path: move.item.path, with: change),
                drive: id.entry.drive
            )
        } catch {
            throw await moveError(error, of: move, entry: id.entry)
        }
    }

    /// The body that moves an item, its name checked; the modified time only if it is known.
    func change(for move: Move) throws(ProviderError) -> ItemChangeWire {
        let id = try OneDriveItemID(move.item.id)
        let parent = try OneDriveItemID(move.parent.id)
        memory.learn(id)
        memory.learn(parent)
        guard id.entry.drive == parent.target.drive else {
            throw ProviderError(.unsupported, detail: "a move from one drive to another")
        }
        try OneDriveNames.check(
            move.name,
            kind: .file,
            in: move.parent,
            isPersonal: OneDriveSpelling.isPersonal(drive: parent.target.drive)
        )
        return ItemChangeWire(
            name: move.name,
            parentReference: move.oldParent.id == move.parent.id
                ? nil : .init(id: parent.target.item),
            fileSystemInfo: move.modifiedTime.map { FileSystemInfoWire(modified: $0) },
            conflictBehavior: .fail
        )
    }

    /// What a refused move means: the answer alone does not say which of the two items is gone, or
    /// that a folder was to go below itself.
    private func moveError(
        _ error: ProviderError,
        of move: Move,
        entry: DriveAddress
    ) async -> ProviderError {
        switch error.kind {
        case .notFound, .parentNotFound:
            do throws(ProviderError) {
                _ = try await api.item(at: entry)
                return error.asKind(.parentNotFound)
            } catch {
                return error
            }
        case .badRequest, .nameRefused, .noPermission, .nameTaken:
            let names = traits.names
            let above = move.item.path.parts.map { names.key($0) }
            let below = move.parent.path.parts.map { names.key($0) }
            let isBelowItself =
                move.parent.id == move.item.id || (!above.isEmpty && below.starts(with: above))
            if isBelowItself { return error.asKind(.moveIntoItself) }
            return error
        default: return error
        }
    }

    // MARK: Changing an item

    /// Changes an item, and does not believe an answer without a body: since November 2025 some
    /// personal drives answer so to PATCH by id, and change nothing (onedrive-api-docs issue 1917).
    ///
    /// The other spelling of the id and the path are tried then.
    ///
    /// - Throws: `.malformedAnswer` when nothing helped.
    func patch(
        _ address: DriveAddress,
        path: RemotePath?,
        with change: ItemChangeWire
    ) async throws(ProviderError) -> DriveItemWire {
        if let wire = try await patch(at: address.path, with: change) { return wire }
        do throws(ProviderError) {
            return try await patchedOtherwise(address, path: path, with: change)
        } catch { throw error.asUnknownOutcome }
    }

    /// What is tried after an answer without a body.
    private func patchedOtherwise(
        _ address: DriveAddress,
        path: RemotePath?,
        with change: ItemChangeWire
    ) async throws(ProviderError) -> DriveItemWire {
        if let padded = address.paddedPath,
            let wire = try await unlessGone({ () async throws(ProviderError) in
                try await patch(at: padded, with: change)
            })
        {
            return wire
        }
        if let path, !path.parts.isEmpty, address.drive == (try await drive()).id {
            let byPath =
                "/drives/\(PercentEncoding.segment(address.drive))/root:/"
                + "\(PercentEncoding.path(path.parts)):"
            // The path is the one last reported: it must still lead to this item.
            let found = try await unlessGone { () async throws(ProviderError) in
                try await api.send(
                    api.request("GET", byPath, query: [("$select", "id,eTag")]),
                    for: DriveItemWire.self,
                    about: .item
                )
            }
            if let found, let id = found.id, OneDriveSpelling.item(id) == address.item,
                let wire = try await patch(
                    at: byPath,
                    with: change,
                    headers: found.eTag.map { [("If-Match", $0)] } ?? []
                )
            {
                return wire
            }
        }
        let wire = try await api.item(at: address)
        guard Self.wire(wire, shows: change) else {
            throw ProviderError(
                .malformedAnswer,
                detail: "PATCH was answered with 204 and changed nothing"
            )
        }
        return wire
    }

    /// One PATCH; nil when the answer has no body.
    private func patch(
        at path: String,
        with change: ItemChangeWire,
        headers: [OneDriveAPI.Header] = []
    ) async throws(ProviderError) -> DriveItemWire? {
        let request = try api.request(
            "PATCH",
            path,
            query: [("$select", OneDriveAPI.itemFields)],
            headers: headers,
            json: change,
            repetition: .harmless
        )
        let response = try await withoutFalseConflicts { () async throws(ProviderError) in
            try await api.send(request, about: change.name == nil ? .item : .parent)
        }
        guard response.head.status != 204, !response.body.isEmpty else { return nil }
        return try OneDriveAPI.decode(DriveItemWire.self, from: response.body)
    }

    private func unlessGone<Value>(
        _ body: () async throws(ProviderError) -> Value?
    ) async throws(ProviderError) -> Value? {
        do throws(ProviderError) {
            return try await body()
        } catch  where error.kind == .notFound || error.kind == .parentNotFound {
            return nil
        }
    }

    /// Whether an item has everything that a change asked for.
    private static func wire(_ wire: DriveItemWire, shows change: ItemChangeWire) -> Bool {
        if let name = change.name, wire.name?.isSameText(as: name) != true { return false }
        if let parent = change.parentReference?.id {
            guard wire.parentReference?.id.map(OneDriveSpelling.item) == parent else {
                return false
            }
        }
        if let time = change.fileSystemInfo?.lastModifiedDateTime.flatMap(Timestamp.init(rfc3339:)),
            OneDriveItems.modifiedTime(wire)?.seconds != time.seconds
        {
            return false
        }
        if let description = change.description, (wire.description ?? "") != description {
            return false
        }
        return true
    }

    /// Repeats a request that was refused as changed by another client although it named no condition: that
    /// happens after quick successive writes (onedrive-api-docs issue 1143).
    func withoutFalseConflicts<Value>(
        _ body: () async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        var delay = Duration.milliseconds(250)
        for _ in 0..<4 {
            do throws(ProviderError) {
                return try await body()
            } catch  where error.kind == .preconditionFailed {
                try await pause(delay)
                delay *= 2
            }
        }
        do throws(ProviderError) {
            return try await body()
        } catch  where error.kind == .preconditionFailed {
            throw error.asKind(.locked)
        }
    }

    public func setAttributes(
        of item: ItemReference,
        to change: AttributeChange
    ) async throws(ProviderError) -> Item {
        let id = try OneDriveItemID(item.id)
        if change.description != nil, !OneDriveSpelling.isPersonal(drive: id.entry.drive) {
            throw ProviderError(.unsupported, detail: "only personal drives keep descriptions")
        }
        let patched = try await patch(
            id.entry,
            path: item.path,
            with: ItemChangeWire(
                fileSystemInfo: change.modifiedTime.map { FileSystemInfoWire(modified: $0) },
                description: change.description
            )
        )
        if let wanted = change.description, (patched.description ?? "") != wanted {
            throw ProviderError(.unsupported, detail: "the service did not keep the description")
        }
        return try known(patched, drive: id.entry.drive)
    }

    // MARK: Delete

    public func delete(_ deletion: Deletion) async throws(ProviderError) {
        let id = try OneDriveItemID(deletion.item.id)
        let address = id.entry
        do throws(ProviderError) {
            guard let revision = deletion.revision else {
                // A folder's tag stays as it is when something comes into it, and with the folder goes all that
                // it holds; of another drive's only the shortcut goes.
                if deletion.expectsNothing, !id.isShortcut, try await !isEmpty(address) {
                    throw ProviderError(
                        .preconditionFailed,
                        detail: "something lies in the folder"
                    )
                }
                return try await withoutFalseConflicts { () async throws(ProviderError) in
                    try await delete(address, tag: nil)
                }
            }
            // The revision's own tag needs no look before; a refusal is looked at.
            if let tag = OneDriveItems.contentTag(revision, isShortcut: id.isShortcut) {
                do throws(ProviderError) {
                    return try await delete(address, tag: tag)
                } catch  where error.kind == .preconditionFailed {}
            }
            var refusedTag: String?
            for _ in 0..<4 {
                let wire = try await api.item(at: address)
                let current = OneDriveItems.revision(
                    wire,
                    in: address.drive,
                    isShortcut: id.isShortcut
                )
                guard current == nil || current == revision else {
                    throw ProviderError(.preconditionFailed, detail: "another revision is current")
                }
                // Refused although the tag is the current one: the service is wrong now and then
                // (issue 1716), and the look just now is what there is instead.
                let tag = wire.eTag == refusedTag ? nil : wire.eTag
                do throws(ProviderError) {
                    return try await delete(address, tag: tag)
                } catch  where error.kind == .preconditionFailed {
                    refusedTag = wire.eTag
                    try await pause(.milliseconds(250))
                }
            }
            throw ProviderError(.locked, detail: "the item changes too fast to be deleted")
        } catch  where error.kind == .notFound {
            return
        }
    }

    /// Whether nothing lies in a folder.
    private func isEmpty(_ folder: DriveAddress) async throws(ProviderError) -> Bool {
        if let count = try await api.item(at: folder).folder?.childCount { return count == 0 }
        let children = try await api.send(
            api.request(
                "GET",
                "\(folder.path)/children",
                query: [("$top", "1"), ("$select", "id")]
            ),
            for: ItemPageWire.self,
            about: .item
        )
        return children.value.isEmpty && children.nextLink == nil
    }

    private func delete(_ address: DriveAddress, tag: String?) async throws(ProviderError) {
        _ = try await api.send(
            api.request("DELETE", address.path, headers: tag.map { [("If-Match", $0)] } ?? []),
            about: .item
        )
    }

    // MARK: Copy

    public func copy(_ copy: Copy) async throws(ProviderError) -> Item {
        let source = try OneDriveItemID(copy.item.id)
        let parent = try OneDriveItemID(copy.parent.id)
        memory.learn(parent)
        try OneDriveNames.check(
            copy.name,
            kind: .file,
            in: copy.parent,
            isPersonal: OneDriveSpelling.isPersonal(drive: parent.target.drive)
        )
        let response: HTTPResponse
        do throws(ProviderError) {
            response = try await api.send(
                try api.request(
                    "POST",
                    "\(source.target.path)/copy",
                    json: ItemChangeWire(
                        name: copy.name,
                        parentReference: .init(
                            driveId: parent.target.drive,
                            id: parent.target.item
                        )
                    )
                ),
                about: .parent
            )
        } catch  where error.kind == .parentNotFound {
            _ = try await api.item(at: source.target)
            throw error
        }
        guard let monitor = response.head.header("Location") else {
            throw ProviderError(.malformedAnswer, detail: "a copy without a monitor")
        }
        let end = try await orUnknown { () async throws(ProviderError) in
            try await self.end(ofCopyTo: parent.target.drive, monitor: monitor)
        }
        let made: DriveAddress
        switch end {
        case .made(let address): made = address
        // The only thing after the acceptance that says that there is no copy.
        case .failed(let progress): throw Self.copyError(progress)
        }
        return try await orUnknown { () async throws(ProviderError) in
            let wire: DriveItemWire
            if let time = copy.modifiedTime {
                // The copy has the time of its making.
                wire = try await patch(
                    made,
                    path: copy.parent.path.appending(copy.name),
                    with: ItemChangeWire(fileSystemInfo: FileSystemInfoWire(modified: time))
                )
            } else {
                wire = try await api.item(at: made)
            }
            return try known(wire, drive: parent.target.drive)
        }
    }

    /// What follows an accepted copy: whatever goes wrong with it, there may be the copy.
    private func orUnknown<Value>(
        _ body: () async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        do throws(ProviderError) {
            return try await body()
        } catch {
            guard error.kind != .cancelled else { throw error }
            throw error.asKind(.outcomeUnknown(retryAfter: error.retryAfter))
        }
    }

    /// How a copy ended, as its monitor reports.
    private enum CopyEnd {
        case made(DriveAddress)
        case failed(CopyMonitorWire)
    }

    /// Waits for a copy.
    ///
    /// If the monitor gives no answer, the item that has the name is none either: it may be another
    /// client's.
    private func end(
        ofCopyTo drive: String,
        monitor: String
    ) async throws(ProviderError) -> CopyEnd {
        let monitor = try api.presigned(monitor)
        var delay = Duration.milliseconds(200)
        var waited = Duration.zero
        while waited < .seconds(30 * 60) {
            // The monitor's address is the permission; a failed copy is a status of 200.
            let response = try await api.exchange(
                HTTPRequest(
                    method: "GET",
                    url: monitor,
                    repetition: .harmless,
                    isAuthorized: false
                )
            )
            guard (200...299).contains(response.head.status) else {
                throw OneDriveErrors.error(response, about: .session)
            }
            let progress = try OneDriveAPI.decode(CopyMonitorWire.self, from: response.body)
            switch progress.status {
            case "completed":
                guard let id = progress.resourceId else {
                    throw ProviderError(.malformedAnswer, detail: "a copy without an id")
                }
                return .made(DriveAddress(drive: drive, item: id))
            case "failed", "cancelled": return .failed(progress)
            case let status where response.head.status == 202 || Self.isUnderWay(status):
                try await pause(delay)
                waited += delay
                delay = min(delay * 2, .seconds(5))
            default: throw ProviderError(.malformedAnswer, detail: "a copy of unknown state")
            }
        }
        throw ProviderError(
            .outcomeUnknown(retryAfter: nil),
            detail: "a copy whose end was not reported"
        )
    }

    /// Whether the monitor says that it goes on; it does so with a status of 200, too.
    private static func isUnderWay(_ status: String?) -> Bool {
        status == "inProgress" || status == "notStarted"
    }

    private static func copyError(_ progress: CopyMonitorWire) -> ProviderError {
        let code = progress.error?.code ?? progress.errorCode ?? "no code"
        let kind: ProviderError.Kind =
            switch code.lowercased() {
            case "namealreadyexists": .nameTaken
            case "quotalimitreached", "insufficientspaceavailable": .quotaExceeded
            case "accessdenied": .noPermission
            case "itemnotfound": .notFound
            case "malwaredetected": .contentBlocked
            // Whatever it was, the bytes can be sent.
            default: .unsupported
            }
        return ProviderError(kind, detail: "copy failed, \(code.prefix(80))")
    }
}
