/// What a service refuses in one account beyond its general rules, and what it does wrong there.
public struct SimulatedConditions: Sendable, Hashable {
    /// Names that it does not take, compared as they stand.
    public var refusedNames: Set<String> = []
    /// Ids of items that the account may only read, with all below them.
    public var readOnly: Set<String> = []
    /// So many of the next contents are stored with another first byte.
    public var damagedContents = 0
    /// Files and folders that one request may move, copy or delete, where the service has such a
    /// bound; nil for the service's own.
    public var itemsAtOnce: Int?
    /// Whether the account's plan has links with an end and a password, where a plan decides.
    public var isPaidPlan = false
    /// Ids of folders that are shared ones of others', mounted here.
    public var sharedFolders: Set<String> = []

    /// An account in which everything goes its usual way.
    public init() {}
}

extension SimulatedTree {
    /// Whether the account may only read an item, because of a condition on it or on a folder above.
    public func isReadOnly(_ id: String) -> Bool {
        guard !conditions.readOnly.isEmpty else { return false }
        var next: String? = id
        while let id = next {
            if conditions.readOnly.contains(id) { return true }
            next = item(id)?.parentID
        }
        return false
    }

    /// Whether there is more below an item than one request may touch.
    func isTooMuchAtOnce(_ item: SimulatedItem, usually limit: Int) -> Bool {
        let limit = conditions.itemsAtOnce ?? limit
        var count = 0
        var folders = [item.id]
        while let folder = folders.popLast() {
            for child in children(of: folder) {
                count += 1
                guard count <= limit else { return true }
                if child.isFolder { folders.append(child.id) }
            }
        }
        return false
    }

    /// Content as it is stored: the same, unless the service is to damage it.
    mutating func stored(_ content: SimulatedContent) -> SimulatedContent {
        guard conditions.damagedContents > 0, content.size > 0 else { return content }
        conditions.damagedContents -= 1
        var bytes = content.bytes
        bytes[0] ^= 1
        return SimulatedContent(bytes)
    }

    /// Sets the conditions; the feed reports everything whose rights changed.
    public mutating func setConditions(_ new: SimulatedConditions) {
        let changed = conditions.readOnly.symmetricDifference(new.readOnly)
        conditions = new
        for id in changed {
            for item in [item(id)].compactMap({ $0 }) + descendants(of: id) { tell(of: item.id) }
        }
    }
}
