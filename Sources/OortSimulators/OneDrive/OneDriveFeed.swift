import Foundation
import OortModel
import Synchronization

extension OneDriveSimulator {
    /// An enumeration that is being paged through: what there was when it began.
    struct Enumeration: Sendable {
        var ids: [String]
        var sequence: Int
    }

    /// A delta token, in the client's eyes a random text.
    private enum Token {
        /// Everything after this change.
        case changes(after: Int)
        /// The next page of an enumeration.
        case page(of: String, from: Int)

        init?(_ text: String) {
            guard let data = Data(base64Encoded: text) else { return nil }
            let parts = String(decoding: data, as: UTF8.self).split(separator: ";")
            if parts.count == 2, parts[0] == "c", let sequence = Int(parts[1]) {
                self = .changes(after: sequence)
            } else if parts.count == 3, parts[0] == "p", let start = Int(parts[2]) {
                self = .page(of: String(parts[1]), from: start)
            } else {
                return nil
            }
        }

        var text: String {
            let plain =
                switch self {
                case .changes(let sequence): "c;\(sequence)"
                case .page(let enumeration, let start): "p;\(enumeration);\(start)"
                }
            return Data(plain.utf8).base64EncodedString()
        }
    }

    /// One page of the feed, before it becomes JSON.
    private struct Page: Sendable {
        var entries: [JSON] = []
        var next: String?
        var last: String?
    }

    func delta(_ target: GraphTarget, _ request: SimulatorRequest) -> SimulatorAnswer {
        let text = target.argument ?? request.query("token")
        let top = min(max(request.query("$top").flatMap { Int($0) } ?? 200, 1), 5000)
        let known = account.withTree { tree in find(target, in: tree).map { ($0.id, tree.sequence) }
        }
        guard let (folder, sequence) = known else {
            return failure(404, "itemNotFound", request: request)
        }
        var page: Page
        switch text {
        case nil, "": page = firstPage(of: folder, top: top, request)
        case "latest":
            page = Page()
            page.last = Token.changes(after: sequence).text
        case let text?:
            guard let token = Token(text) else {
                return failure(
                    400,
                    "invalidRequest",
                    "Provided sync token is malformed",
                    request: request
                )
            }
            guard let some = self.page(at: token, of: folder, top: top, request) else {
                return resync(request)
            }
            page = some
        }
        var answer: [String: JSON] = [
            "@odata.context": "https://graph.microsoft.com/v1.0/$metadata#Collection(driveItem)",
            "value": .array(page.entries.map { selected($0, request) }),
        ]
        if let next = page.next {
            answer["@odata.nextLink"] = .string(link(request, with: ["token": next]))
        }
        if let last = page.last {
            answer["@odata.deltaLink"] = .string(link(request, with: ["token": last]))
        }
        return .json(.object(answer))
    }

    private func resync(_ request: SimulatorRequest) -> SimulatorAnswer {
        let code = state.withLock { $0.lostCode }
        let path = request.rawPath
        return failure(
            410,
            "resyncRequired",
            "Resync required.",
            inner: code,
            headers: [("Location", request.url(host: request.host, path: path))],
            request: request
        )
    }

    private func firstPage(of folder: String, top: Int, _ request: SimulatorRequest) -> Page {
        let enumeration = account.withTree { tree in
            Enumeration(ids: tree.descendants(of: folder).map(\.id), sequence: tree.sequence)
        }
        let name = state.withLock { state in
            state.nextNumber += 1
            let name = String(state.nextNumber)
            // Bounded: who pages slowly begins anew, as after a 410.
            if state.enumerations.count >= 64 { state.enumerations = [:] }
            state.enumerations[name] = enumeration
            return name
        }
        return self.page(of: enumeration, named: name, from: 0, of: folder, top: top, request)
    }

    private func page(
        at token: Token,
        of folder: String,
        top: Int,
        _ request: SimulatorRequest
    ) -> Page? {
        switch token {
        case .page(let name, let start):
            guard let enumeration = state.withLock({ $0.enumerations[name] }) else { return nil }
            return page(of: enumeration, named: name, from: start, of: folder, top: top, request)
        case .changes(let sequence):
            guard sequence >= state.withLock({ $0.oldestSequence }) else { return nil }
            return changes(after: sequence, in: folder, top: top, request)
        }
    }

    /// Each item is shown as it is now; one that went meanwhile is in the changes that follow.
    private func page(
        of enumeration: Enumeration,
        named name: String,
        from start: Int,
        of folder: String,
        top: Int,
        _ request: SimulatorRequest
    ) -> Page {
        let showsShared = request.prefers("Include-Feature=AddToOneDrive")
        let size = account.pageSize(enumerating: enumeration.ids.count, atMost: top)
        let ids = enumeration.ids.dropFirst(start).prefix(size)
        let end = start + ids.count
        var page = Page()
        page.entries = account.withTree { tree in
            entries([folder] + ids, in: tree, request).filter {
                showsShared || $0["remoteItem"] == nil
            }
        }
        if end < enumeration.ids.count {
            page.next = Token.page(of: name, from: end).text
        } else {
            page.last = Token.changes(after: enumeration.sequence).text
        }
        return page
    }

    private func changes(
        after sequence: Int,
        in folder: String,
        top: Int,
        _ request: SimulatorRequest
    ) -> Page {
        let showsAncestors = !request.prefers("deltaExcludeParent")
        let showsShared = request.prefers("Include-Feature=AddToOneDrive")
        return account.withTree { tree in
            let all = tree.changes(after: sequence).filter { change in
                change.id != folder && Self.drive(ofItem: change.id) == Self.drive(ofItem: folder)
            }
            let some = all.prefix(top)
            var page = Page()
            if let last = some.last, some.count < all.count {
                page.next = Token.changes(after: last.sequence).text
            } else {
                page.last = Token.changes(after: tree.sequence).text
            }
            guard !some.isEmpty else { return page }
            var ids = [folder]
            if showsAncestors {
                for change in some where tree.lies(change.id, in: folder) {
                    var above: [String] = []
                    var next = tree.item(change.id)?.parentID
                    while let id = next, id != folder {
                        above.append(id)
                        next = tree.item(id)?.parentID
                    }
                    ids += above.reversed().filter { !ids.contains($0) }
                }
            }
            page.entries = entries(ids, in: tree, request)
            for change in some {
                page.entries += told(change.id, in: folder, of: tree, request)
            }
            if !showsShared { page.entries.removeAll { $0["remoteItem"] != nil } }
            return page
        }
    }

    private func entries(
        _ ids: [String],
        in tree: SimulatedTree,
        _ request: SimulatorRequest
    ) -> [JSON] {
        ids.compactMap { id in
            guard let item = tree.item(id), !tree.isTrashed(id) else { return nil }
            return json(item, in: tree, request: request, isFeed: true)
        }
    }

    /// The feed's entries for one changed item: its present state, or that it is gone, and then everything
    /// below it, too.
    private func told(
        _ id: String,
        in folder: String,
        of tree: SimulatedTree,
        _ request: SimulatorRequest
    ) -> [JSON] {
        guard let item = tree.item(id) else {
            return [Self.tombstone(id, parent: nil, isFolder: false)]
        }
        if !tree.isTrashed(id), tree.lies(id, in: folder) {
            return [json(item, in: tree, request: request, isFeed: true)]
        }
        let below = tree.isTrashed(id) ? tree.descendants(of: id) : []
        return ([item] + below).map {
            Self.tombstone($0.id, parent: $0.parentID, isFolder: $0.isFolder)
        }
    }

    /// Neither name nor path.
    private static func tombstone(_ id: String, parent: String?, isFolder: Bool) -> JSON {
        var reference: [String: JSON] = [
            "driveId": .string(drive(ofItem: id)), "driveType": "personal",
        ]
        if let parent { reference["id"] = .string(parent) }
        return [
            "id": .string(id), "size": 0, "deleted": ["state": "deleted"],
            "parentReference": .object(reference), isFolder ? "folder" : "file": [:],
        ]
    }
}
