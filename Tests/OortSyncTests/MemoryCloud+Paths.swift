import OortModel
import OrderedCollections
import Synchronization

/// A feed that reports places by path, as Dropbox's does: a page has the present state of each path that
/// changed, and not each step.
///
/// What is moved is its former path, at which nothing is any more, and its new one, a folder with
/// everything below it. What was removed with a folder is not reported by itself.
extension MemoryCloud {
    /// From now on places are reported by path, at most so many a page.
    func tellPaths(atOnce count: Int) {
        state.withLock { ($0.tellsPaths, $0.changesAtOnce) = (true, count) }
    }
}

extension MemoryCloud.State {
    /// Where the feed ends now.
    var feedEnd: Int { tellsPaths ? changedPaths.count : log.count }

    /// The item as the service reports it.
    func told(_ item: Item) -> Item {
        guard tellsPaths, let path = path(of: item.id) else { return item }
        var item = item
        (item.parentID, item.path) = (nil, RemotePath(path))
        return item
    }

    /// Where an item lies; nil where reported places are folders' ids, and for what is not there.
    func path(of id: ItemID) -> [String]? {
        guard tellsPaths else { return nil }
        var path: [String] = []
        var next = id
        while next != MemoryCloud.rootID {
            guard let item = entries[next]?.item, let parent = item.parentID else { return nil }
            path.insert(item.fileName, at: 0)
            next = parent
        }
        return path
    }

    /// Notes that an item changed that lay at another path before, if it did.
    mutating func notePaths(of id: ItemID, before old: [String]?) {
        guard let path = path(of: id) else { return }
        if let old, old != path { changedPaths.append(old) }
        changedPaths.append(path)
        guard old != nil, old != path else { return }
        var folders = [id]
        while let folder = folders.popLast() {
            let below = entries.values.map(\.item).filter { $0.parentID == folder }
            for item in below.sorted(by: { $0.fileName < $1.fileName }) {
                if let path = self.path(of: item.id) { changedPaths.append(path) }
                folders.append(item.id)
            }
        }
    }

    /// The page of changed paths after a place in the feed.
    func page(after place: Int, _ names: NameRules) -> ChangePage {
        var last: [[String]: Int] = [:]
        for index in place..<changedPaths.count {
            last[changedPaths[index].map(names.key)] = index
        }
        let news = last.values.sorted()
        var changes: [Change] = []
        for index in news.prefix(changesAtOnce) {
            let path = changedPaths[index]
            if let id = id(at: path, names), let item = entries[id]?.item {
                changes.append(.changed(told(item)))
            } else if id(at: path.dropLast(), names) != nil {
                changes.append(.removedPath(RemotePath(path)))
            }
        }
        let hasMore = news.count > changesAtOnce
        let next = hasMore ? news[changesAtOnce - 1] + 1 : changedPaths.count
        return ChangePage(
            changes: changes,
            cursor: Cursor("\(cursorEpoch):\(next)"),
            hasMore: hasMore,
            isEnumeration: false
        )
    }

    private func id(at path: some Sequence<String>, _ names: NameRules) -> ItemID? {
        var id = MemoryCloud.rootID
        for name in path {
            let key = names.key(name)
            let found = entries.values.first {
                $0.item.parentID == id && names.key($0.item.fileName).isSameText(as: key)
            }
            guard let found else { return nil }
            id = found.item.id
        }
        return id
    }
}
