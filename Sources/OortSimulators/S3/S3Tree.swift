import OortModel

/// A bucket in a tree of items, so that an edit of the tree edits the bucket.
///
/// A key's parts between slashes are the names of folders and, the last one, of a file; a key that ends in
/// a slash is a file without a name. So each key has its place, and each file of the tree its key. Folders
/// are there as long as something lies in them; one that was made past the protocol shows as a marker. What
/// was deleted in a bucket that keeps versions is in the tree's trash, with all its revisions.
extension SimulatedTree {
    /// Where an item keeps the id of the mark of its deletion.
    private static let deletionMark = "s3 deletion"

    // MARK: Looking

    /// The object that a key has now.
    func object(at key: String) -> S3Object? {
        let parts = key.parts(between: "/").map(String.init)
        guard let name = parts.last, let folder = objectFolder(at: parts.dropLast()) else {
            return nil
        }
        if let item = items(named: name, in: folder).last(where: { !$0.isFolder }),
            let revision = item.head
        {
            return S3Object(key: key, item: item, revision: revision)
        }
        guard name.isEmpty, folder != rootID, isEmpty(folder), let item = item(folder) else {
            return nil
        }
        return S3Object(key: key, item: item, revision: nil)
    }

    /// The folder at a path; a file may have its name, too.
    private func objectFolder(at parts: ArraySlice<String>) -> String? {
        var current = rootID
        for part in parts {
            guard let next = items(named: part, in: current).first(where: \.isFolder) else {
                return nil
            }
            current = next.id
        }
        return current
    }

    /// The key of a file, or of a folder's marker; nil for what is in no bucket.
    func key(ofObject item: SimulatedItem) -> String? {
        guard let parts = path(of: item.id), !parts.isEmpty else { return nil }
        return parts.joined(separator: "/") + (item.isFolder ? "/" : "")
    }

    /// All that a key had, the newest first, of the items that have or had it.
    func history(of key: String, _ itemIDs: [String]) -> [S3Version] {
        var versions: [S3Version] = []
        let items = itemIDs.compactMap { item($0) }
            .sorted { ($0.createdTime, $0.id) < ($1.createdTime, $1.id) }
        for item in items {
            guard !item.isFolder else {
                let object = S3Object(key: key, item: item, revision: nil)
                versions.append(
                    S3Version(
                        key: key,
                        id: object.versionID,
                        object: object,
                        itemID: item.id,
                        time: object.modified
                    )
                )
                continue
            }
            for revision in item.revisions {
                let object = S3Object(key: key, item: item, revision: revision)
                versions.append(
                    S3Version(
                        key: key,
                        id: revision.id,
                        object: object,
                        itemID: item.id,
                        time: object.modified
                    )
                )
            }
            guard let deletion = deletion(of: item) else { continue }
            versions.append(
                S3Version(
                    key: key,
                    id: deletion.id,
                    object: nil,
                    itemID: item.id,
                    time: Timestamp(seconds: deletion.time.seconds)
                )
            )
        }
        if let last = versions.indices.last { versions[last].isLatest = true }
        return versions.reversed()
    }

    /// The mark of an item's deletion, by whomever; nil where it is not deleted, or the mark was deleted.
    private func deletion(of item: SimulatedItem) -> (id: String, time: Timestamp)? {
        if item.extra[Self.deletionMark] == .null { return nil }
        var next: SimulatedItem? = item
        while let current = next {
            if let time = current.trashedTime {
                return (item.extra[Self.deletionMark]?.text ?? "deletion-of-\(item.id)", time)
            }
            next = current.parentID.flatMap { self.item($0) }
        }
        return nil
    }

    // MARK: Changing

    /// Gives a key a new content; without versions the one before is gone.
    mutating func put(
        _ content: SimulatedContent,
        at key: String,
        _ head: S3ObjectHead,
        keepsVersions: Bool
    ) -> S3Object? {
        let parts = key.parts(between: "/").map(String.init)
        guard let name = parts.last else { return nil }
        let time = head.modifiedTime
        let before = object(at: key)
        let item: SimulatedItem?
        if let before, before.revision != nil {
            item = write(content, to: before.item.id, modifiedTime: time)
        } else {
            let folder = makeObjectFolder(at: parts.dropLast())
            item = create(name, in: folder, content: content, modifiedTime: time)
        }
        guard let item, let revision = item.head else { return nil }
        let updated = update(item.id) { item in
            if !keepsVersions {
                item.revisions = [revision]
                item.extra = [:]
            }
            item.modifiedTime = revision.modifiedTime
            item.mimeType = head.fields["content-type"]
            item.extra[S3Object.place(of: revision)] = head.json
        }
        return updated.map { S3Object(key: key, item: $0, revision: revision) }
    }

    private mutating func makeObjectFolder(at parts: ArraySlice<String>) -> String {
        var current = rootID
        for part in parts {
            current =
                items(named: part, in: current).first(where: \.isFolder)?.id
                ?? create(part, in: current, kind: .folder).id
        }
        return current
    }

    /// Deletes what a key has for good, where no versions are kept.
    mutating func removeObject(at key: String) {
        guard let object = object(at: key) else { return }
        let parent = object.item.parentID
        remove(object.item.id)
        prune(parent)
    }

    /// Marks a key as deleted.
    ///
    /// - Returns: The id of the mark.
    mutating func markDeleted(_ key: String) -> String {
        let mark = rules.makeRevisionID(&random)
        let parts = key.parts(between: "/").map(String.init)
        let found = object(at: key)
        if let found, found.revision == nil {
            removeObject(at: key)
            return mark
        }
        // What was never there is marked all the same.
        let item =
            found?.item
            ?? create(parts.last ?? "", in: makeObjectFolder(at: parts.dropLast()))
        update(item.id) { $0.extra[Self.deletionMark] = .string(mark) }
        trash(item.id)
        prune(item.parentID)
        return mark
    }

    /// Deletes one version for good, or the mark of a deletion, after which what is newest then is current.
    ///
    /// `itemIDs` are the items that have or had the key.
    mutating func remove(_ version: S3Version, among itemIDs: [String]) {
        if version.object == nil {
            update(version.itemID) { $0.extra[Self.deletionMark] = .null }
        } else if let revision = version.object?.revision {
            update(version.itemID) { item in
                item.revisions.removeAll { $0.id == revision.id }
                item.extra[S3Object.place(of: revision)] = nil
            }
        } else {
            return removeObject(at: version.key)
        }
        if let item = item(version.itemID), item.revisions.isEmpty, deletion(of: item) == nil {
            remove(item.id)
            prune(item.parentID)
        }
        let left = history(of: version.key, itemIDs)
        guard let newest = left.first, newest.object != nil, isTrashed(newest.itemID),
            let item = item(newest.itemID)
        else { return }
        let parts = version.key.parts(between: "/").map(String.init)
        let folder = makeObjectFolder(at: parts.dropLast())
        let time = item.modifiedTime
        restore(item.id)
        move(item.id, to: folder, name: item.name)
        update(item.id) {
            $0.modifiedTime = time
            $0.extra[Self.deletionMark] = nil
        }
        // It may have been the last thing in a folder of the trash.
        prune(item.parentID)
    }

    /// Takes away the folders in which nothing is left.
    private mutating func prune(_ folder: String?) {
        var next = folder
        while let id = next, id != rootID, isEmpty(id), let item = item(id) {
            if children(of: id, includingTrashed: true).isEmpty { remove(id) } else { trash(id) }
            next = item.parentID
        }
    }
}
