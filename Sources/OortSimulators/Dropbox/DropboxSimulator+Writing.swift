import OortModel
import Synchronization

extension DropboxSimulator {
    // MARK: Folders

    func createFolder(_ json: JSON) throws(DropboxFailure) -> JSON {
        let argument = try DropboxArgument(
            json,
            known: ["path", "autorename"],
            place: "request body"
        )
        let path = try argument.path("path", .create)
        let renames = try argument.bool("autorename", default: false)
        return ["metadata": try makeFolder(path, renames: renames)]
    }

    private func makeFolder(_ path: String, renames: Bool) throws(DropboxFailure) -> JSON {
        try account.withTree { tree throws(DropboxFailure) in
            do throws(DropboxWriteError) {
                let target = try tree.target(path, renames: renames)
                let parent = try tree.folder(at: target.dropLast())
                let item = tree.create(target[target.count - 1], in: parent, kind: .folder)
                return tree.metadata(item, tagged: false)
            } catch { throw .route(DropboxFailure.wrapping("path", error.json)) }
        }
    }

    func createFolderBatch(_ json: JSON) throws(DropboxFailure) -> JSON {
        let argument = try DropboxArgument(
            json,
            known: ["paths", "autorename", "force_async"],
            place: "request body"
        )
        let paths = try argument.list("paths", atMost: 10_000)
        let renames = try argument.bool("autorename", default: false)
        let isForced = try argument.bool("force_async", default: false)
        var entries: [JSON] = []
        for path in paths {
            guard let text = path.text, DropboxPathForms.create.accept(text) else {
                throw .malformed("request body: paths: did not match pattern")
            }
            do throws(DropboxFailure) {
                entries.append(
                    [".tag": "success", "metadata": try makeFolder(text, renames: renames)])
            } catch {
                guard case .route(let error) = error else { throw error }
                entries.append([".tag": "failure", "failure": error])
            }
        }
        let result: JSON = [".tag": "complete", "entries": .array(entries)]
        return isForced || paths.count >= 100 ? job(result, entries: entries.count) : result
    }

    // MARK: Deleting

    func delete(_ json: JSON) throws(DropboxFailure) -> JSON {
        let argument = try DropboxArgument(
            json,
            known: ["path", "parent_rev"],
            place: "request body"
        )
        return ["metadata": try remove(argument)]
    }

    private func remove(_ argument: DropboxArgument) throws(DropboxFailure) -> JSON {
        let path = try argument.path("path", .write)
        let revision = try argument.optionalText("parent_rev")
        return try account.withTree { tree throws(DropboxFailure) in
            let item = try tree.item(at: path, orFailure: "path_lookup")
            if let revision, item.head?.id != revision {
                throw item.isFolder
                    ? .tags("path_write", "conflict", "folder")
                    : .tags("path_write", "conflict", "file")
            }
            guard !tree.isTooMuchAtOnce(item, usually: Self.mostAtOnce) else {
                throw .tags("too_many_files")
            }
            let metadata = tree.metadata(item, tagged: true)
            tree.trash(item.id)
            return metadata
        }
    }

    func deleteBatch(_ json: JSON) throws(DropboxFailure) -> JSON {
        let argument = try DropboxArgument(json, known: ["entries"], place: "request body")
        var results: [JSON] = []
        for entry in try argument.list("entries", atMost: 1000) {
            let entry = try DropboxArgument(
                entry,
                known: ["path", "parent_rev"],
                place: "request body: entries"
            )
            do throws(DropboxFailure) {
                results.append([".tag": "success", "metadata": try remove(entry)])
            } catch {
                guard case .route(let error) = error else { throw error }
                results.append([".tag": "failure", "failure": error])
            }
        }
        return job([".tag": "complete", "entries": .array(results)], entries: results.count)
    }

    // MARK: Moving and copying

    func relocate(_ json: JSON, copies: Bool) throws(DropboxFailure) -> JSON {
        let argument = try DropboxArgument(
            json,
            known: [
                "from_path", "to_path", "autorename", "allow_ownership_transfer",
                "allow_shared_folder",
            ],
            place: "request body"
        )
        let renames = try argument.bool("autorename", default: false)
        return ["metadata": try relocate(argument, copies: copies, renames: renames)]
    }

    private func relocate(
        _ argument: DropboxArgument,
        copies: Bool,
        renames: Bool
    ) throws(DropboxFailure) -> JSON {
        let from = try argument.path("from_path", .write)
        let to = try argument.path("to_path", .write)
        return try account.withTree { tree throws(DropboxFailure) in
            let item = try tree.item(at: from, orFailure: "from_lookup")
            do throws(DropboxWriteError) {
                // A change of case alone is answered as done, and is not.
                if !copies, let there = try? tree.place(to).item, there.id == item.id {
                    return tree.metadata(item, tagged: true)
                }
                let target = try tree.target(to, renames: renames)
                if item.isFolder, let place = tree.path(of: item.id),
                    tree.key(of: Array(target.prefix(place.count))) == tree.key(of: place)
                {
                    throw .cannotMoveIntoItself
                }
                guard !tree.isTooMuchAtOnce(item, usually: DropboxSimulator.mostAtOnce) else {
                    throw .tooManyFiles
                }
                let parent = try tree.folder(at: target.dropLast())
                let name = target[target.count - 1]
                if copies {
                    let copy = tree.copy(item, to: parent, name: name)
                    return tree.metadata(copy, tagged: true)
                }
                if !item.isFolder { tree.renewRevision(of: item.id) }
                guard let moved = tree.move(item.id, to: parent, name: name) else {
                    throw .conflict("file")
                }
                return tree.metadata(moved, tagged: true)
            } catch {
                switch error {
                case .cannotMoveIntoItself: throw .tags("cant_move_folder_into_itself")
                case .tooManyFiles: throw .tags("too_many_files")
                default: throw .route(DropboxFailure.wrapping("to", error.json))
                }
            }
        }
    }

    func relocateBatch(_ json: JSON, copies: Bool) throws(DropboxFailure) -> JSON {
        let argument = try DropboxArgument(
            json,
            known: ["entries", "autorename", "allow_ownership_transfer"],
            place: "request body"
        )
        let renames = try argument.bool("autorename", default: false)
        var results: [JSON] = []
        for entry in try argument.list("entries", atMost: 1000) {
            let entry = try DropboxArgument(
                entry,
                known: ["from_path", "to_path"],
                place: "request body: entries"
            )
            do throws(DropboxFailure) {
                results.append([
                    ".tag": "success",
                    "success": try relocate(entry, copies: copies, renames: renames),
                ])
            } catch {
                guard case .route(let error) = error else { throw error }
                results.append([
                    ".tag": "failure",
                    "failure": DropboxFailure.wrapping("relocation_error", error),
                ])
            }
        }
        return job([".tag": "complete", "entries": .array(results)], entries: results.count)
    }

    // MARK: Jobs

    /// A job whose result can be asked for; a long one is in progress the first time.
    private func job(_ result: JSON, entries: Int) -> JSON {
        memory.withLock { memory in
            let id = memory.random.hex(34)
            memory.jobs[id] = (entries > 100 ? 1 : 0, result)
            return [".tag": "async_job_id", "async_job_id": .string(id)]
        }
    }

    func checkJob(_ json: JSON) throws(DropboxFailure) -> JSON {
        let argument = try DropboxArgument(json, known: ["async_job_id"], place: "request body")
        let id = try argument.text("async_job_id")
        let result = memory.withLock { memory -> JSON? in
            guard let job = memory.jobs[id] else { return nil }
            guard job.left > 0 else { return job.result }
            memory.jobs[id] = (job.left - 1, job.result)
            return [".tag": "in_progress"]
        }
        guard let result else { throw .tags("invalid_async_job_id") }
        return result
    }

    // MARK: Revisions

    func listRevisions(_ json: JSON) throws(DropboxFailure) -> JSON {
        let argument = try DropboxArgument(
            json,
            known: ["path", "mode", "limit", "before_rev", "include_restorable_info"],
            place: "request body"
        )
        let path = try argument.path("path", .read)
        let mode = try argument.union("mode", tags: ["path", "id"], default: "path").tag
        let limit = try argument.integer("limit", in: 1...100, default: 10)
        let before = try argument.optionalText("before_rev")
        return try account.withTree { tree throws(DropboxFailure) in
            let found: DropboxHistory
            do throws(DropboxLookupError) {
                found = try tree.history(path, follows: mode == "id")
            } catch { throw error.failure() }
            let item = found.item
            var revisions = Array(found.revisions.reversed())
            if let before, mode == "path",
                let index = revisions.firstIndex(where: {
                    $0.id == before
                })
            {
                revisions.removeFirst(index + 1)
            }
            let entries = revisions.prefix(Int(limit)).map {
                tree.metadata(item, tagged: false, revision: $0, at: found.former)
            }
            var answer: JSON = [
                "is_deleted": .bool(found.former != nil || tree.isTrashed(item.id)),
                "entries": .array(Array(entries)),
                "has_more": .bool(revisions.count > Int(limit)),
            ]
            if let time = item.trashedTime {
                answer = answer.merging(["server_deleted": .string(time.rfc3339(.seconds))])
            }
            return answer
        }
    }

    func restore(_ json: JSON) throws(DropboxFailure) -> JSON {
        let argument = try DropboxArgument(json, known: ["path", "rev"], place: "request body")
        let path = try argument.path("path", .create)
        let revision = try argument.text("rev")
        return try account.withTree { tree throws(DropboxFailure) in
            guard let item = tree.item(ofRevision: revision),
                let old = item.revisions.last(where: { $0.id == revision })
            else { throw .tags("invalid_revision") }
            let place: DropboxPlace
            do throws(DropboxLookupError) { place = try tree.place(path) } catch {
                throw error.failure("path_lookup")
            }
            guard place.item?.isFolder != true, let name = place.parts.last else {
                throw .tags("path_write", "conflict", "folder")
            }
            var target = place.item
            if target == nil {
                let parent: String
                do throws(DropboxWriteError) {
                    // Folders that are deleted are made anew.
                    parent = try tree.folder(at: place.parts.dropLast())
                } catch { throw .tags("path_write", "conflict", "file_ancestor") }
                if tree.isTrashed(item.id) {
                    // With its old id.
                    tree.restore(item.id)
                    target = tree.move(item.id, to: parent, name: name)
                } else {
                    target = tree.create(name, in: parent, kind: .file)
                }
            }
            guard let target else { throw .tags("path_lookup", "not_found") }
            guard
                let written = tree.write(
                    old.content,
                    to: target.id,
                    modifiedTime: old.modifiedTime
                )
            else { throw .tags("path_lookup", "not_found") }
            return tree.metadata(written, tagged: false)
        }
    }
}

/// Why something cannot be put at a path: a WriteError.
enum DropboxWriteError: Error, Equatable {
    case conflict(String)
    case malformedPath
    case disallowedName
    case insufficientSpace
    case noWritePermission
    case cannotMoveIntoItself
    case tooManyFiles

    var json: JSON {
        switch self {
        case .conflict(let kind): DropboxFailure.union(["conflict", kind])
        case .malformedPath: [".tag": "malformed_path"]
        case .disallowedName: [".tag": "disallowed_name"]
        case .insufficientSpace: [".tag": "insufficient_space"]
        case .noWritePermission: [".tag": "no_write_permission"]
        case .cannotMoveIntoItself, .tooManyFiles: [".tag": "other"]
        }
    }
}

/// What `files/list_revisions` finds.
struct DropboxHistory {
    var item: SimulatedItem
    /// The oldest first.
    var revisions: [SimulatedRevision]
    /// The path that the item left; nil while it is there.
    var former: [String]?
}

extension SimulatedTree {
    /// The names under which something new can be put at a path.
    func target(_ path: String, renames: Bool) throws(DropboxWriteError) -> [String] {
        var place: DropboxPlace
        do throws(DropboxLookupError) {
            place = try self.place(path)
        } catch { throw error == .malformedPath ? .malformedPath : .conflict("file_ancestor") }
        // Of what is there the given spelling counts, not the stored one.
        guard let name = place.parts.last else { throw .conflict("folder") }
        guard !Self.disallowedNames.contains(name.lowercased()),
            !conditions.refusedNames.contains(name)
        else { throw .disallowedName }
        guard !isReadOnly(nearestFolder(above: place.parts)) else { throw .noWritePermission }
        guard let taken = place.item else { return place.parts }
        guard renames else { throw .conflict(taken.isFolder ? "folder" : "file") }
        let parent = taken.parentID ?? rootID
        var number = 1
        while !items(named: Self.numbered(name, number), in: parent).isEmpty { number += 1 }
        place.parts[place.parts.count - 1] = Self.numbered(name, number)
        return place.parts
    }

    /// `name (1).ext`.
    private static func numbered(_ name: String, _ number: Int) -> String {
        guard let dot = name.unicodeScalars.lastIndex(of: "."), dot != name.startIndex else {
            return "\(name) (\(number))"
        }
        return "\(name[..<dot]) (\(number))\(name[dot...])"
    }

    /// The lowest folder on the way to a path that is there.
    private func nearestFolder(above parts: [String]) -> String {
        var current = rootID
        for part in parts.dropLast() {
            guard let next = items(named: part, in: current).first else { break }
            current = next.id
        }
        return current
    }

    /// The id of a folder at names from the root; makes what is missing.
    mutating func folder(at parts: some Sequence<String>) throws(DropboxWriteError) -> String {
        var current = rootID
        for part in parts {
            if let item = items(named: part, in: current).first {
                guard item.isFolder else { throw .conflict("file_ancestor") }
                current = item.id
            } else {
                guard !Self.disallowedNames.contains(part.lowercased()) else {
                    throw .disallowedName
                }
                current = create(part, in: current, kind: .folder).id
            }
        }
        return current
    }

    /// A copy with new ids of an item and all below it.
    mutating func copy(_ item: SimulatedItem, to parent: String, name: String) -> SimulatedItem {
        let below = item.isFolder ? children(of: item.id) : []
        let copy = create(
            name,
            in: parent,
            kind: item.kind,
            content: item.head?.content,
            modifiedTime: item.modifiedTime
        ) { $0.mimeType = item.mimeType }
        for child in below { _ = self.copy(child, to: copy.id, name: child.name) }
        return copy
    }

    /// The revisions of the file at a path, or that was there last; with `follows` those of the same
    /// file elsewhere, too.
    func history(_ path: String, follows: Bool) throws(DropboxLookupError) -> DropboxHistory {
        let place = path.begins(with: "/") ? try self.place(path) : nil
        if let place, place.item == nil, let left = departure(from: place.parts),
            let item = item(left.id)
        {
            if follows { return DropboxHistory(item: item, revisions: item.revisions) }
            return DropboxHistory(
                item: item,
                revisions: Array(item.revisions.prefix(left.revisions)),
                former: place.parts
            )
        }
        let item = try liveOrDeleted(path)
        guard !item.isFolder else { throw .notFile }
        return DropboxHistory(item: item, revisions: item.revisions)
    }

    /// What lies at a path, or what was last deleted there.
    func liveOrDeleted(_ path: String) throws(DropboxLookupError) -> SimulatedItem {
        let place: DropboxPlace
        if path.begins(with: "id:"), let item = item(path) { return item }
        place = try self.place(path)
        if let item = place.item { return item }
        let wanted = key(of: place.parts)
        let deleted = allItems.filter { item in
            isTrashed(item.id) && !item.isFolder
                && self.path(of: item.id).map { key(of: $0) } == wanted
        }
        guard let latest = deleted.max(by: { $0.serverModifiedTime < $1.serverModifiedTime })
        else { throw .notFound }
        return latest
    }
}

extension SimulatedTree {
    /// The item at a path, except for the root, which no call moves or removes; a failure is reported under
    /// a tag.
    fileprivate func item(
        at path: String,
        orFailure tag: String
    ) throws(DropboxFailure) -> SimulatedItem {
        do throws(DropboxLookupError) {
            guard let item = try place(path).item, item.id != rootID else { throw .notFound }
            return item
        } catch { throw error.failure(tag) }
    }
}
