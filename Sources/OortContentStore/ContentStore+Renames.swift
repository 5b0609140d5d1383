public import OortCatalog
import Synchronization

/// Open contents whose keys change with those of their rows.
extension ContentStore: ContentHolder {
    public func rename(_ old: ContentKey, to new: ContentKey) -> Bool {
        state.withLock { state in
            state.follow(old, to: new)
            guard state.cached[new] == nil else { return false }
            state.renaming[old] = new
            state.renaming[new] = nil
            guard let known = state.cached[old] else { return true }
            known.content.keys.withLock { $0 = (new, new) }
            state.apart.remove(old)
            state.cached[old] = nil
            state.cached[new] = known
            if state.unsaved.remove(old) != nil { state.unsaved.insert(new) }
            if state.beingSaved.remove(old) != nil { state.beingSaved.insert(new) }
            state.mismatches[new] = state.mismatches.removeValue(forKey: old)
            return true
        }
    }

    public func follow(_ old: ContentKey, to new: ContentKey) {
        state.withLock { $0.follow(old, to: new) }
    }

    public func renamesEnd() {
        state.withLock { state in
            state.renames += 1
            state.renaming = [:]
        }
    }
}

extension ContentStore.State {
    /// Whether a transaction under way gives a content this key, or another one in its place.
    func isRenaming(_ key: ContentKey) -> Bool {
        renaming[key] != nil || renaming.values.contains(key)
    }

    /// Gives all contents that the service has under one key another as their present one.
    mutating func follow(_ old: ContentKey, to new: ContentKey) {
        if cached[old] != nil { apart.insert(old) }
        for filed in apart {
            guard let content = cached[filed]?.content else {
                apart.remove(filed)
                continue
            }
            let isApart = content.keys.withLock { keys in
                if keys.present == old { keys.present = new }
                return keys.present != keys.filed
            }
            if !isApart { apart.remove(filed) }
        }
    }

    /// Files a content, with one user, under its key; returns the one that is there already.
    mutating func file(_ content: CachedContent) -> CachedContent? {
        var key = content.filed
        while let next = renaming[key] { key = next }
        if let other = cached[key]?.content { return other }
        content.keys.withLock { $0 = (key, key) }
        cached[key] = (content, 1)
        return nil
    }
}
