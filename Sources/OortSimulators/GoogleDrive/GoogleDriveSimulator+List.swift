import Foundation
import OortModel
import Synchronization

extension GoogleDriveSimulator {
    /// What was asked of `files.list`, of a tree that did not change since.
    struct Question: Hashable, Sendable {
        var terms: [String]
        var sequence: Int
    }

    func list(_ request: SimulatorRequest) throws(Failure) -> SimulatorAnswer {
        let mask = try mask(
            request,
            GoogleDriveSchema.fileList,
            default: "kind,nextPageToken,incompleteSearch,files(kind,id,name,mimeType)"
        )
        let size = try pageSize(request)
        let includesDrives = [
            request.query("includeItemsFromAllDrives"), request.query("includeTeamDriveItems"),
        ].contains("true")
        if includesDrives, !supportsAllDrives(request) {
            throw .invalid(
                "includeItemsFromAllDrives",
                "The includeItemsFromAllDrives parameter must be accompanied by supportsAllDrives."
            )
        }
        let query = try query(request)
        let corpora = request.query("corpora") ?? "user"
        let driveID = request.query("driveId") ?? request.query("teamDriveId")
        guard (driveID != nil) == (corpora == "drive" || corpora == "teamDrive") else {
            throw .invalid("driveId", "The driveId parameter goes with corpora=drive.")
        }
        let order = try order(request, query)
        return try account.withTree { tree throws(Failure) in
            let asked = Question(
                terms: ["q", "orderBy"].map { request.query($0) ?? "" }
                    + [corpora, driveID ?? "", "\(includesDrives)"],
                sequence: tree.sequence
            )
            let isFirst = request.query("pageToken") == nil
            let known = self.state.withLock { isFirst ? nil : $0.found[asked] }
            var found = known ?? []
            if known == nil {
                found = try self.matches(
                    query,
                    corpora: corpora,
                    drive: driveID,
                    includesDrives: includesDrives,
                    in: tree,
                    request
                )
                order(&found)
            }
            let start = try Self.offset(request.query("pageToken"), below: found)
            let isEnumeration = [nil, "trashed=false", "trashed=true"].contains(request.query("q"))
            let page = found[start...].prefix(
                isEnumeration ? account.pageSize(enumerating: found.count, atMost: size) : size
            )
            let fileMask = mask.below("files")
            var answer: [String: JSON] = [
                "kind": "drive#fileList", "incompleteSearch": false,
                "files": .array(
                    page.map { self.resource(of: $0, in: tree, for: request, mask: fileMask) }
                ),
            ]
            // The next page of a large account is not searched for anew while nothing changes, whatever
            // folder is listed between the two.
            self.state.withLock { state in
                state.found = state.found.filter { $0.key.sequence == tree.sequence }
                state.found[asked] = page.endIndex < found.endIndex ? found : nil
            }
            if page.endIndex < found.endIndex, let last = page.last {
                answer["nextPageToken"] = .string("~!!~AI9\(page.endIndex).\(last.id)")
            }
            return .json(mask.applied(to: .object(answer)))
        }
    }

    /// Where a page begins: after the item that ended the one before, if that is still there.
    private static func offset(
        _ token: String?,
        below found: [SimulatedItem]
    ) throws(Failure) -> Int {
        guard let token else { return 0 }
        guard token.hasPrefix("~!!~AI9"), let dot = token.firstIndex(of: "."),
            let number = Int(token[token.index(token.startIndex, offsetBy: 7)..<dot])
        else { throw .invalid("pageToken") }
        let last = token[token.index(after: dot)...]
        if 1...max(found.count, 1) ~= number, let item = found.dropFirst(number - 1).first,
            item.id == last
        {
            return number
        }
        if let index = found.firstIndex(where: { $0.id == last }) { return index + 1 }
        return min(number, found.count)
    }

    private func query(_ request: SimulatorRequest) throws(Failure) -> GoogleDriveQuery? {
        guard let text = request.query("q"), !text.isEmpty else { return nil }
        do throws(GoogleDriveQuery.Invalid) {
            return try GoogleDriveQuery(text)
        } catch { throw .invalid("q") }
    }

    private func matches(
        _ query: GoogleDriveQuery?,
        corpora: String,
        drive: String?,
        includesDrives: Bool,
        in tree: SimulatedTree,
        _ request: SimulatorRequest
    ) throws(Failure) -> [SimulatedItem] {
        if let drive, self.drive(drive) == nil {
            throw Failure(404, "notFound", "Shared drive not found: \(drive)", location: "driveId")
        }
        let query = query?.withRoot(tree.rootID)
        for parent in query?.parents ?? [] where tree.item(parent) == nil {
            throw Failure(404, "notFound", "File not found: .", location: "fileId")
        }
        let candidates: [SimulatedItem]
        if let parents = query?.onlyParents {
            candidates = Set(parents).flatMap { tree.children(of: $0, includingTrashed: true) }
        } else {
            candidates = Array(tree.allItems)
        }
        let drives = state.withLock { $0.drives }
        return candidates.filter { item in
            let root = tree.root(of: item.id)
            let home = drives.contains(root) ? root : nil
            if item.id == home || item.id == tree.rootID { return false }
            switch corpora {
            case "drive", "teamDrive": if home != drive { return false }
            case "allDrives", "allTeamDrives": if home != nil, !includesDrives { return false }
            default:
                // The user's corpus shows a shared drive's items only folder by folder.
                if home != nil, !includesDrives || query?.onlyParents == nil { return false }
            }
            guard let query else { return true }
            return query.matches(item, self.facts(of: item, home: home, in: tree, query))
        }
    }

    private func facts(
        of item: SimulatedItem,
        home: String?,
        in tree: SimulatedTree,
        _ query: GoogleDriveQuery
    ) -> GoogleDriveFacts {
        GoogleDriveFacts(
            email: account.email,
            mimeType: GoogleDriveType.of(item),
            isTrashed: tree.isTrashed(item.id),
            sharedWithMe: item.extra["sharedWithMeTime"] != nil,
            ownedByMe: home == nil && role(on: item, in: tree) == .owner,
            searchText: query.hasFullText ? item.searchText : ""
        )
    }

    /// The order of a listing; without `orderBy` it means nothing, but does not change.
    private func order(
        _ request: SimulatorRequest,
        _ query: GoogleDriveQuery?
    ) throws(Failure) -> (inout [SimulatedItem]) -> Void {
        guard let text = request.query("orderBy"), !text.isEmpty else {
            return { $0.sort { $0.id < $1.id } }
        }
        if query?.hasFullText == true {
            throw .invalid("orderBy", "Sorting is not supported for queries with fullText terms.")
        }
        var keys: [(key: String, isDescending: Bool)] = []
        for part in text.split(separator: ",") {
            let words = part.split(separator: " ").map(String.init)
            guard let key = words.first, Self.orderKeys.contains(key),
                words.count == 1 || (words.count == 2 && words[1] == "desc")
            else { throw .invalid("orderBy") }
            keys.append((key, words.count == 2))
        }
        return { items in
            items.sort { left, right in
                for (key, isDescending) in keys {
                    let order = Self.compare(left, right, by: key)
                    if order != 0 { return isDescending ? order > 0 : order < 0 }
                }
                return left.id < right.id
            }
        }
    }

    private static let orderKeys: Set = [
        "createdTime", "folder", "modifiedByMeTime", "modifiedTime", "name", "name_natural",
        "quotaBytesUsed", "recency", "sharedWithMeTime", "starred", "viewedByMeTime",
    ]

    private static func compare(
        _ left: SimulatedItem,
        _ right: SimulatedItem,
        by key: String
    ) -> Int {
        func order<Value: Comparable>(_ left: Value, _ right: Value) -> Int {
            left == right ? 0 : left < right ? -1 : 1
        }
        let fold = NameRules.Comparison.caseInsensitive
        return switch key {
        case "createdTime": order(left.createdTime, right.createdTime)
        case "folder": order(left.isFolder ? 0 : 1, right.isFolder ? 0 : 1)
        case "name": order(fold.key(left.name), fold.key(right.name))
        case "name_natural":
            switch left.name.compare(right.name, options: [.caseInsensitive, .numeric]) {
            case .orderedAscending: -1
            case .orderedSame: 0
            case .orderedDescending: 1
            }
        case "quotaBytesUsed": order(left.size, right.size)
        case "starred":
            order(
                left.extra["starred"]?.bool == true ? 0 : 1,
                right.extra["starred"]?.bool == true ? 0 : 1
            )
        case "sharedWithMeTime", "viewedByMeTime":
            order(left.extra[key]?.text ?? "", right.extra[key]?.text ?? "")
        default: order(left.modifiedTime, right.modifiedTime)
        }
    }
}

extension GoogleDriveQuery {
    /// The query with the alias `root` replaced by the id that it stands for.
    fileprivate func withRoot(_ id: String) -> GoogleDriveQuery {
        switch self {
        case .and(let terms): .and(terms.map { $0.withRoot(id) })
        case .or(let terms): .or(terms.map { $0.withRoot(id) })
        case .not(let term): .not(term.withRoot(id))
        case .inList("root", "parents"): .inList(value: id, list: "parents")
        default: self
        }
    }
}
