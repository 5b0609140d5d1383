import Foundation
public import OortModel
import OortTransport

extension BoxProvider {
    static let itemQuery = [("fields", BoxWire.Item.fields)]
    /// Box moves and deletes large folders for up to ten minutes before it answers.
    private static let longestTreeAct = Duration.seconds(660)
    /// Box cuts off what is longer, without a word.
    private static let longestDescription = 255

    // MARK: Creating

    public func createFolder(_ folder: NewFolder) async throws(ProviderError) -> Item {
        let parent = try folderID(folder.parent)
        let request = try api.request(
            "POST",
            api.url("folders", Self.itemQuery),
            BoxWire.Change(name: folder.name, parent: .init(parent.id)),
            repetition: .onlyIfNotDone
        )
        return try await creating { () async throws(ProviderError) in
            let wire: BoxWire.Item = try await sendCreation(request)
            return try await kept(try await item(wire), as: folder.name)
        } outcome: { () async throws(ProviderError) in
            // It is not known whose the existing folder is: the caller looks.
            guard try await items(named: folder.name, in: folder.parent).isEmpty else {
                throw ProviderError(.outcomeUnknown(retryAfter: nil), detail: "503, then there")
            }
            return nil
        }
    }

    /// Does what creates something, and once more where Box said to come again and nothing came of
    /// the first try: a write may take effect after such an answer.
    ///
    /// `outcome` looks for what the first try may have made; nil where it made nothing.
    func creating(
        _ attempt: () async throws(ProviderError) -> Item,
        outcome: () async throws(ProviderError) -> Item?
    ) async throws(ProviderError) -> Item {
        do throws(ProviderError) { return try await attempt() } catch {
            guard case .outcomeUnknown(let wait?) = error.kind else { throw error }
            try await api.pause(wait)
            do throws(ProviderError) {
                if let made = try await outcome() { return made }
                return try await attempt()
            } catch let second {
                // Taken now, by whom is not known.
                throw second.kind == .nameTaken
                    ? ProviderError(.outcomeUnknown(retryAfter: nil), detail: second.detail)
                    : second.asUnknownOutcome
            }
        }
    }

    /// Sends what puts something into a folder: what is not found is the folder.
    func sendCreation<Result: Decodable>(
        _ request: HTTPRequest,
        as type: Result.Type = Result.self
    ) async throws(ProviderError) -> Result {
        do throws(ProviderError) { return try await api.send(request) } catch {
            guard error.kind == .notFound else { throw error }
            throw ProviderError(.parentNotFound, detail: error.detail)
        }
    }

    /// A new item that has the name that it was given.
    ///
    /// Box is said to leave characters out of some names; such an item goes to the trash again.
    ///
    /// - Throws: `.nameRefused`.
    func kept(_ item: Item, as name: String) async throws(ProviderError) -> Item {
        guard !NameRules.isKept(name, as: item.fileName) else { return item }
        do throws(ProviderError) {
            try await delete(Deletion(item: ItemReference(id: item.id, path: .root)))
        } catch { throw error.asUnknownOutcome }
        throw ProviderError(.nameRefused, detail: "Box would store it under another name")
    }

    // MARK: Moving

    public func move(_ move: Move) async throws(ProviderError) -> Item {
        let id = try BoxID(move.item.id)
        let parent = try folderID(move.parent)
        let change = BoxWire.Change(name: move.name, parent: .init(parent.id))
        switch try await api.perform(try request(for: change, of: id)) {
        case .success(let response):
            let item = try await item(try BoxAPI.decode(response.body, as: BoxWire.Item.self))
            guard NameRules.isKept(move.name, as: item.fileName) else {
                throw ProviderError(.nameRefused, detail: "Box stored it under another name")
            }
            if id.kind == .folder, let version = item.version {
                memory.learn(moved: id, to: version)
            }
            return item
        case .refused(let failure):
            if failure.error.kind == .nameTaken,
                failure.conflicts.contains(where: { BoxID(type: $0.type, id: $0.id) == id }),
                let item = try await outcome(of: move)
            {
                return item
            }
            throw await refusal(failure.error, of: move)
        }
    }

    /// One call for the place and the name; absolute, so it can be repeated.
    private func request(
        for change: BoxWire.Change,
        of id: BoxID
    ) throws(ProviderError) -> HTTPRequest {
        var request = try api.request(
            "PUT",
            api.url(id.path, Self.itemQuery),
            change,
            repetition: .harmless
        )
        if id.kind == .folder { request.answerTimeout = Self.longestTreeAct }
        return request
    }

    /// The item, where it has the place and the name already: an earlier try did it.
    private func outcome(of move: Move) async throws(ProviderError) -> Item? {
        let item = try await item(move.item)
        return item.parentID == move.parent.id && item.fileName.isSameText(as: move.name)
            ? item : nil
    }

    /// Box says 404 for the item and for the folder.
    private func refusal(_ error: ProviderError, of move: Move) async -> ProviderError {
        guard error.kind == .notFound else { return error }
        do throws(ProviderError) {
            _ = try await item(move.item)
            return ProviderError(.parentNotFound, detail: error.detail)
        } catch { return error }
    }

    public func setAttributes(
        of item: ItemReference,
        to change: AttributeChange
    ) async throws(ProviderError) -> Item {
        let id = try BoxID(item.id)
        guard change.modifiedTime == nil || id.kind == .file else {
            throw ProviderError(.unsupported, detail: "Box keeps times of files only")
        }
        if let text = change.description, text.unicodeScalars.count > Self.longestDescription {
            throw ProviderError(
                .unsupported,
                detail: "Box keeps \(Self.longestDescription) characters of a description"
            )
        }
        let wire = BoxWire.Change(
            description: change.description,
            content_modified_at: Self.spelled(change.modifiedTime)
        )
        let answer: BoxWire.Item = try await api.send(try request(for: wire, of: id))
        return try await self.item(answer)
    }

    // MARK: Deleting

    public func delete(_ deletion: Deletion) async throws(ProviderError) {
        let id = try BoxID(deletion.item.id)
        do throws(ProviderError) {
            guard let revision = deletion.revision, id.kind == .file else {
                return try await delete(id, tag: nil, withAll: !deletion.expectsNothing)
            }
            try await guarded(id, revision) { (tag) async throws(ProviderError) in
                try await delete(id, tag: tag)
            }
        } catch {
            guard error.kind == .notFound else { throw error }
            // Gone with the account's folder it would be back with that.
            if !isWhole { try await requireTop() }
        }
    }

    /// Without `withAll` Box refuses a folder that is not empty, whoever filled it.
    private func delete(
        _ id: BoxID,
        tag: String?,
        withAll: Bool = true
    ) async throws(ProviderError) {
        let takesAll = id.kind == .folder && withAll
        var request = HTTPRequest(
            method: "DELETE",
            url: api.url(id.path, takesAll ? [("recursive", "true")] : []),
            headers: tag.map { [("If-Match", $0)] } ?? [],
            repetition: .harmless
        )
        if id.kind == .folder { request.answerTimeout = Self.longestTreeAct }
        switch try await api.perform(request) {
        case .success: return
        case .refused(let failure): throw failure.error
        }
    }

    /// Runs what is bound to a file's tag as long as the file has this revision: the tag changes with
    /// the file's name and place, too.
    ///
    /// - Throws: `.preconditionFailed` when another revision is current.
    func guarded<Value>(
        _ id: BoxID,
        _ revision: Revision,
        _ attempt: (_ tag: String) async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        for _ in 0..<4 {
            let tag = try await tag(of: id, guarding: revision)
            do throws(ProviderError) { return try await attempt(tag) } catch {
                guard error.kind == .preconditionFailed else { throw error }
            }
            try await api.pause(.milliseconds(100))
        }
        throw ProviderError(.locked, detail: "the file changes too fast")
    }

    func tag(
        of id: BoxID,
        guarding revision: Revision
    ) async throws(ProviderError) -> String {
        let wire: BoxWire.Item = try await api.send(
            api.get(id.path, [("fields", "etag,file_version,item_status")])
        )
        guard !wire.isGone else {
            throw ProviderError(.notFound, detail: "Box has it in its trash")
        }
        guard let tag = wire.etag?.text, let version = wire.file_version?.id.text else {
            throw ProviderError(.malformedAnswer, detail: "a file without a tag or a version")
        }
        guard Revision(version) == revision else {
            throw ProviderError(.preconditionFailed, detail: "another version is current")
        }
        return tag
    }

    // MARK: Copying

    public func copy(_ copy: Copy) async throws(ProviderError) -> Item {
        let id = try fileID(copy.item)
        let parent = try folderID(copy.parent)
        let request = try api.request(
            "POST",
            api.url(id.path + "/copy", Self.itemQuery),
            BoxWire.Change(name: copy.name, parent: .init(parent.id)),
            repetition: .onlyIfNotDone
        )
        let made = try await creating { () async throws(ProviderError) in
            do throws(ProviderError) {
                let wire: BoxWire.Item = try await api.send(request)
                return try await kept(try await item(wire), as: copy.name)
            } catch {
                guard error.kind == .notFound else { throw error }
                _ = try await item(copy.item)
                throw ProviderError(.parentNotFound, detail: error.detail)
            }
        } outcome: { () async throws(ProviderError) in
            guard try await items(named: copy.name, in: copy.parent).isEmpty else {
                throw ProviderError(.outcomeUnknown(retryAfter: nil), detail: "503, then there")
            }
            return nil
        }
        // Whether a copy has its original's time is not documented.
        guard let time = copy.modifiedTime, made.clientModifiedTime?.seconds != time.seconds else {
            return made
        }
        do throws(ProviderError) {
            return try await setAttributes(
                of: ItemReference(id: made.id, path: .root),
                to: AttributeChange(modifiedTime: time)
            )
        } catch { throw error.asUnknownOutcome }
    }

    /// Box takes times after 1970 only.
    static func spelled(_ time: Timestamp?) -> String? {
        time.map { max($0, Timestamp(seconds: 0)).rfc3339(.seconds) }
    }
}
