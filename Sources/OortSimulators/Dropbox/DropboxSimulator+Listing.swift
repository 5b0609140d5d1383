import OortModel
import Synchronization

/// A place in a listing or in the change feed behind it.
struct DropboxListing: Sendable {
    var folderID: String
    var isRecursive: Bool
    var includesDeleted: Bool
    var includesNonDownloadable: Bool
    var limit: Int
    /// How many items a page of the listing has.
    var pageSize: Int
    /// Items still to be listed; empty once the listing is over.
    var pending: ArraySlice<String>
    /// Paths of deleted items still to be listed.
    var pendingDeleted: ArraySlice<[String]>
    /// The feed goes on after this change.
    var sequence: Int
}

extension DropboxSimulator {
    private static let listArguments: Set<String> = [
        "path", "recursive", "limit", "include_deleted", "include_mounted_folders",
        "include_non_downloadable_files", "include_media_info",
        "include_has_explicit_shared_members", "shared_link", "include_property_groups",
        "include_restorable_info",
    ]

    func listFolder(_ json: JSON) throws(DropboxFailure) -> JSON {
        let (listing, entries) = try begin(json)
        return page(listing, entries)
    }

    func latestCursor(_ json: JSON) throws(DropboxFailure) -> JSON {
        var (listing, _) = try begin(json)
        listing.pending = []
        listing.pendingDeleted = []
        return ["cursor": .string(remember(listing))]
    }

    private func begin(_ json: JSON) throws(DropboxFailure) -> (DropboxListing, [JSON]) {
        let argument = try DropboxArgument(json, known: Self.listArguments, place: "request body")
        let path = try argument.path("path", .listing)
        let isRecursive = try argument.bool("recursive", default: false)
        let includesDeleted = try argument.bool("include_deleted", default: false)
        let nonDownloadable = try argument.bool("include_non_downloadable_files", default: true)
        _ = try argument.bool("include_mounted_folders", default: true)
        let limit = try argument.integer("limit", in: 1...2000, default: 500)
        return try account.withTree { tree throws(DropboxFailure) in
            let folder: SimulatedItem
            do throws(DropboxLookupError) {
                guard let item = try tree.place(path).item else { throw .notFound }
                guard item.isFolder else { throw .notFolder }
                folder = item
            } catch { throw error.failure() }
            var items =
                isRecursive ? tree.descendants(of: folder.id) : tree.children(of: folder.id)
            if isRecursive, folder.id != tree.rootID { items.insert(folder, at: 0) }
            if !nonDownloadable {
                items.removeAll { if case .nativeDocument = $0.kind { true } else { false } }
            }
            var deleted: [[String]] = []
            if includesDeleted {
                // Below a deleted folder each path is listed by itself, too.
                deleted = tree.allItems.filter { item in
                    isRecursive
                        ? tree.isTrashed(item.id) && tree.lies(item.id, in: folder.id)
                        : item.trashedTime != nil && item.parentID == folder.id
                }.compactMap { tree.path(of: $0.id) }.sorted { $0.lexicographicallyPrecedes($1) }
            }
            let total = items.count + deleted.count
            return (
                DropboxListing(
                    folderID: folder.id,
                    isRecursive: isRecursive,
                    includesDeleted: includesDeleted,
                    includesNonDownloadable: nonDownloadable,
                    limit: Int(limit),
                    pageSize: isRecursive
                        ? account.pageSize(enumerating: total, atMost: Int(limit)) : Int(limit),
                    pending: items.map(\.id)[...],
                    pendingDeleted: deleted[...],
                    sequence: tree.sequence
                ), []
            )
        }
    }

    /// Lists what is pending; each entry shows the present state of its item.
    private func page(_ listing: DropboxListing, _ first: [JSON]) -> JSON {
        var listing = listing
        let limit = listing.pageSize
        let entries = account.withTree { tree in
            var entries = first
            while entries.count < limit, let id = listing.pending.popFirst() {
                guard let item = tree.item(id), !tree.isTrashed(id) else { continue }
                entries.append(tree.metadata(item, tagged: true))
            }
            while entries.count < limit, let parts = listing.pendingDeleted.popFirst() {
                if tree.item(at: parts) == nil { entries.append(tree.deletedMetadata(parts)) }
            }
            return entries
        }
        return [
            "entries": .array(entries),
            "cursor": .string(remember(listing)),
            "has_more": .bool(!listing.pending.isEmpty || !listing.pendingDeleted.isEmpty),
        ]
    }

    private func remember(_ listing: DropboxListing) -> String {
        memory.withLock { memory in
            let cursor = "AA" + memory.random.text(60, of: "abcdefghijklmnopqrstuvwxyz0123456789_-")
            memory.cursors[cursor] = listing
            return cursor
        }
    }

    private func recall(_ cursor: String) throws(DropboxFailure) -> DropboxListing {
        if let listing = memory.withLock({ $0.cursors[cursor] }) { return listing }
        guard cursor.begins(with: "AA"), cursor.utf8.count == 62 else {
            throw .malformed("Invalid \"cursor\" parameter")
        }
        throw .tags("reset")
    }

    func listFolderContinue(_ json: JSON) throws(DropboxFailure) -> JSON {
        let argument = try DropboxArgument(json, known: ["cursor"], place: "request body")
        var listing = try recall(try argument.text("cursor"))
        guard listing.pending.isEmpty, listing.pendingDeleted.isEmpty else {
            return page(listing, [])
        }
        let after = listing
        let (entries, sequence, hasMore) = try account.withTree {
            tree throws(DropboxFailure) -> ([JSON], Int, Bool) in
            guard tree.item(after.folderID) != nil, !tree.isTrashed(after.folderID) else {
                throw .tags("path", "not_found")
            }
            var entries: [JSON] = []
            let changes = changes(after, in: tree)
            for change in changes.prefix(after.limit) {
                if let item = tree.item(at: change.parts) {
                    entries.append(tree.metadata(item, tagged: true))
                } else if tree.item(at: change.parts.dropLast()) != nil {
                    // Only the deleted folder is reported, and not what lay below it.
                    entries.append(tree.deletedMetadata(change.parts))
                }
            }
            let hasMore = changes.count > after.limit
            let sequence =
                hasMore ? changes[after.limit - 1].sequence : tree.sequence
            return (entries, sequence, hasMore)
        }
        listing.sequence = sequence
        return [
            "entries": .array(entries), "cursor": .string(remember(listing)),
            "has_more": .bool(hasMore),
        ]
    }

    private func changes(
        _ listing: DropboxListing,
        in tree: SimulatedTree
    ) -> [SimulatedTree.PathChange] {
        let folder = tree.path(of: listing.folderID) ?? []
        let prefix = tree.key(of: folder)
        return tree.pathChanges(after: listing.sequence).filter { change in
            guard change.parts.count > folder.count,
                prefix.isEmpty || tree.key(of: Array(change.parts.prefix(folder.count))) == prefix
            else { return false }
            return listing.isRecursive || change.parts.count == folder.count + 1
        }
    }

    func longPoll(_ json: JSON) async throws(DropboxFailure) -> JSON {
        let argument = try DropboxArgument(
            json,
            known: ["cursor", "timeout"],
            place: "request body"
        )
        let listing = try recall(try argument.text("cursor"))
        let timeout = try argument.integer("timeout", in: 30...480, default: 30)
        let deadline = ContinuousClock.now + .seconds(timeout)
        var sequence = listing.sequence
        while true {
            let seen = sequence
            let (hasNews, now) = account.withTree { tree in
                (!changes(listing, in: tree).isEmpty, tree.sequence)
            }
            if hasNews { return ["changes": true] }
            sequence = Swift.max(seen, now)
            let left = deadline - ContinuousClock.now
            guard left > .zero, !Task.isCancelled,
                await account.waitForChange(after: sequence, atMost: left)
            else { return ["changes": false] }
        }
    }

    func getMetadata(_ json: JSON) throws(DropboxFailure) -> JSON {
        let argument = try DropboxArgument(
            json,
            known: [
                "path", "include_media_info", "include_deleted",
                "include_has_explicit_shared_members", "include_property_groups",
            ],
            place: "request body"
        )
        let path = try argument.text("path")
        guard !path.isEmpty else {
            throw .malformed("request body: path: The root folder is unsupported.")
        }
        _ = try argument.path("path", .read)
        let includesDeleted = try argument.bool("include_deleted", default: false)
        return try account.withTree { tree throws(DropboxFailure) in
            do throws(DropboxLookupError) {
                let place = try tree.place(path)
                if let item = place.item {
                    return tree.metadata(item, tagged: true, revision: place.revision)
                }
                let wasThere = tree.allItems.contains { item in
                    item.trashedTime != nil
                        && tree.path(of: item.id).map { tree.key(of: $0) }
                            == tree.key(of: place.parts)
                }
                guard includesDeleted, wasThere else { throw .notFound }
                return tree.deletedMetadata(place.parts)
            } catch { throw error.failure() }
        }
    }

    // MARK: Search

    func search(_ json: JSON) throws(DropboxFailure) -> JSON {
        let argument = try DropboxArgument(
            json,
            known: ["query", "options", "match_field_options", "include_highlights"],
            place: "request body"
        )
        let words = SimulatedItem.words(of: try argument.text("query"))
        var isInside = true
        var path = ""
        var limit: Int64 = 100
        var extensions: [String]?
        if argument.fields["options"] != nil {
            let options = try argument.nested(
                "options",
                known: [
                    "path", "max_results", "order_by", "file_status", "filename_only",
                    "file_extensions", "file_categories", "account_id",
                ]
            )
            if options.fields["path"] != nil { path = try options.path("path", .listing) }
            limit = try options.integer("max_results", in: 1...1000, default: 100)
            extensions = options.fields["file_extensions"]?.elements?.compactMap(\.text)
            isInside = try !options.bool("filename_only", default: false)
        }
        let matches = account.withTree { tree -> [JSON] in
            guard let folder = try? tree.place(path).item else { return [] }
            return tree.allItems.filter { item in
                item.id != folder.id && tree.lies(item.id, in: folder.id)
                    && (isInside
                        ? item.isFound(by: words)
                        : words.allSatisfy { item.name.lowercased().contains($0) })
                    && (extensions?.contains { item.name.lowercased().hasSuffix("." + $0) }
                        ?? true)
            }.sorted { $0.id < $1.id }.map { item in
                [
                    "match_type": [".tag": isInside ? "file_content" : "filename"],
                    "metadata": [
                        ".tag": "metadata", "metadata": tree.metadata(item, tagged: true),
                    ],
                ]
            }
        }
        return searchPage(matches, limit: Int(limit))
    }

    func searchContinue(_ json: JSON) throws(DropboxFailure) -> JSON {
        let argument = try DropboxArgument(json, known: ["cursor"], place: "request body")
        let cursor = try argument.text("cursor")
        guard let rest = memory.withLock({ $0.searches[cursor] }) else { throw .tags("other") }
        return searchPage(rest, limit: 100)
    }

    private func searchPage(_ matches: [JSON], limit: Int) -> JSON {
        guard matches.count > limit else { return ["matches": .array(matches), "has_more": false] }
        let cursor = memory.withLock { memory in
            let cursor = memory.random.hex(40)
            memory.searches[cursor] = Array(matches.dropFirst(limit))
            return cursor
        }
        return [
            "matches": .array(Array(matches.prefix(limit))), "has_more": true,
            "cursor": .string(cursor),
        ]
    }
}
