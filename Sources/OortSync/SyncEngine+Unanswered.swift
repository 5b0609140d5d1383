import Logging
import OortCatalog
import OortContentStore
import OortModel

/// What became of operations whose answer never came.
extension SyncEngine {
    /// The items of operations without an answer that the service is asked about from now on, in rounds
    /// that run beside each other and beside all sending (`resolve`).
    ///
    /// Until they end, it is as if the operations were still under way: nothing is begun or planned that
    /// depends on them.
    func unansweredRounds() async -> [[Inode]] {
        guard unanswered.mayExist, !rests else { return [] }
        unanswered.mayExist = false
        do throws(CatalogError) {
            let open = try await catalog.openIntents(of: account)
            let rounds = unanswered.next(
                of: open,
                underWay: Set(queue.running.keys),
                at: now,
                lastRun: feed.lastRun
            )
            for inode in rounds.joined() { queue.isAsked(about: inode) }
            // Only a look is due, which had waited for an operation that was answered after all.
            if rounds.isEmpty, !unanswered.mayExist, feed.owesLooks { return [[]] }
            return rounds
        } catch {
            logger.error("what was asked could not be read", metadata: ["error": "\(error)"])
            unanswered.mayExist = true
            wake(at: now + 1000)
            return []
        }
    }

    /// Asks the service about a round of operations without an answer, one after the other.
    func resolve(_ round: [Inode]) async {
        var hasAsked = false
        for inode in round {
            if await ask(about: inode) { hasAsked = true }
            unanswered.ended(inode)
            queue.ended(inode)
        }
        // Items that could not be asked for before.
        if hasAsked || feed.owesLooks { await lookAtUnsureAfterwards() }
    }

    /// Asks the service what became of an item's operation.
    ///
    /// - Returns: whether there was anything to ask about.
    private func ask(about inode: Inode) async -> Bool {
        // The rest of the round is asked about when the account can be used again.
        guard !Task.isCancelled, !rests else {
            unanswered.mayExist = true
            return false
        }
        var hasAsked = false
        do throws(ProviderError) {
            // Read now: the answer may have come since.
            let stored = try await storedAsync { () throws(CatalogError) in
                try await self.catalog.intent(of: inode)
            }
            guard let (intent, item) = stored else {
                unanswered.isFound(inode)
                return false
            }
            hasAsked = true
            queue.changes(item?.id, in: inode)
            switch try await resolve(intent, of: inode, item) {
            case .done: failures.forget(inode)
            case .notDone: break
            case .notKnown:
                unanswered.mayExist = true
                return true
            }
            unanswered.settled(inode)
            planSoon()
        } catch {
            unanswered.mayExist = true
            guard !Task.isCancelled else { return hasAsked }
            note(error)
            switch error.kind {
            case .offline, .signedOut, .clientRefused:
                // The whole account fails, not this operation.
                break
            default:
                let moment = now + backoff(after: failures.failed(inode), error).inMilliseconds
                unanswered.delay(inode, until: moment)
                wake(at: moment)
            }
        }
        return hasAsked
    }

    /// What became of an operation.
    private enum Outcome {
        case done, notDone
        /// Unknown until the feed has been read.
        case notKnown
    }

    /// Finds out what became of an operation.
    private func resolve(
        _ intent: Intent,
        of inode: Inode,
        _ item: ItemReference?
    ) async throws(ProviderError) -> Outcome {
        if intent.expected != nil { return try await resolveCreation(intent, of: inode) }
        guard let item else {
            try await clear(inode)
            return .notDone
        }
        var answer: Item?
        do throws(ProviderError) {
            let now = try await provider.item(item)
            answer = try await done(intent, of: inode, now)
        } catch {
            guard error.kind == .notFound else { throw error }
            if intent.kind == .delete {
                order.touch(item.id)
                _ = try await storedAsync { () throws(CatalogError) in
                    try await self.catalog.succeeded(
                        intent,
                        of: inode,
                        item: nil,
                        sentModified: nil
                    )
                }
                return .done
            }
        }
        guard let answer else {
            try await storedAsync { () throws(CatalogError) in
                try await self.catalog.beUnsure(of: item.id, in: self.account)
            }
            try await clear(inode)
            return .notDone
        }
        order.touch(answer.id)
        _ = try await storedAsync { () throws(CatalogError) in
            try await self.catalog.succeeded(
                intent,
                of: inode,
                item: answer,
                sentModified: answer.clientModifiedTime,
                timeChangesRevision: self.provider.traits.timeChangesRevision
            )
        }
        return .done
    }

    /// Finds out what became of an operation that creates an item.
    private func resolveCreation(
        _ intent: Intent,
        of inode: Inode
    ) async throws(ProviderError) -> Outcome {
        var found = try await created(by: intent, of: inode)
        if found == nil, intent.reservedID == nil, let upload = intent.upload {
            // Somebody may have moved it away: the feed will report that.
            let since = unanswered.isMissing(inode, since: order.next())
            guard feed.lastRun >= since else {
                readFeedSoon()
                return .notKnown
            }
            found = try await movedAway(upload, intent, of: inode)
        }
        unanswered.isFound(inode)
        guard let found else {
            try await clear(inode)
            return .notDone
        }
        try await record(found, as: intent, of: inode)
        return .done
    }

    /// Stores that an item was created, as it was then; changes by others since are news.
    func record(
        _ item: Item,
        as intent: Intent,
        of inode: Inode
    ) async throws(ProviderError) {
        var created = item
        if let folder = intent.folder, let name = intent.name {
            created.fileName = name
            if item.path != nil { created.path = folder.path.appending(name) }
            if item.parentID != nil { created.parentID = folder.id }
        }
        // Where the item has other bytes now but had ours once, ours are what both sides agreed on. Where
        // it never had ours, both sides agree on its present bytes, and ours are sent in place of them.
        if let upload = intent.upload, item.contentHash != upload.hash,
            try await provider.isOutcome(item, of: upload)
        {
            created.contentHash = upload.hash
            created.size = intent.size ?? item.size
            created.rev = item.rev?.asSent
            created.clientModifiedTime = upload.modifiedTime
        }
        let isOlder =
            !created.fileName.isSameText(as: item.fileName) || created.parentID != item.parentID
            || created.path != item.path || created.rev != item.rev
        order.touch(item.id)
        _ = try await storedAsync { [created] () throws(CatalogError) in
            try await self.catalog.succeeded(
                intent,
                of: inode,
                item: created,
                sentModified: created.clientModifiedTime,
                isOlder: isOlder
            )
        }
    }

    /// An item that an upload created and somebody moved away before it was asked for.
    ///
    /// Nil where several items fit: a file that is taken for the wrong item would follow that.
    private func movedAway(
        _ upload: LostUpload,
        _ intent: Intent,
        of inode: Inode
    ) async throws(ProviderError) -> Item? {
        let newcomers = try await storedAsync { () throws(CatalogError) in
            try await self.catalog.newcomers(since: intent, in: self.account)
        }
        var found: [Item] = []
        for newcomer in newcomers {
            do throws(ProviderError) {
                // An item that a program is about to change is left alone.
                let known = try stored { () throws(CatalogError) in
                    try catalog.node(remoteID: newcomer.id, account: account)
                }
                if let inode = known?.inode, store.writers.isOpen(inode) { continue }
                let item = try await provider.item(newcomer)
                guard try await provider.isOutcome(item, of: upload) else { continue }
                // Where no hash tells contents apart, the provider judged by other attributes.
                if item.contentHash?.algorithm.tellsContentsApart == true {
                    found.append(item)
                } else if let confirmed = try await confirmed(item, as: intent, of: inode) {
                    found.append(confirmed)
                }
            } catch {
                // A lasting refusal proves nothing: at the worst the file is sent a second time.
                guard error.isLastingRefusal else { throw error }
            }
        }
        return found.count == 1 ? found[0] : nil
    }

    /// The item that an operation created, if it was done.
    func created(
        by intent: Intent,
        of inode: Inode
    ) async throws(ProviderError) -> Item? {
        guard let folder = intent.folder, let name = intent.name else { return nil }
        var found: [Item] = []
        if let id = intent.reservedID {
            do throws(ProviderError) {
                found = [
                    try await provider.item(
                        ItemReference(id: ItemID(id), path: folder.path.appending(name))
                    )
                ]
            } catch { guard error.kind == .notFound else { throw error } }
        } else {
            do throws(ProviderError) {
                found = try await provider.items(named: name, in: folder)
            } catch {
                guard error.kind == .parentNotFound || error.kind == .notFound else { throw error }
            }
        }
        let kind: ItemKind = intent.kind == .createFolder ? .folder : .file
        var candidates: [Item] = []
        for item in found where item.kind == kind {
            // An item that is known already is not the lost one; if the catalog cannot be read, neither is
            // certain.
            let known = try stored { () throws(CatalogError) in
                try catalog.node(remoteID: item.id, account: account)
            }
            if let known, known.parent != nil || known.isAccountRoot { continue }
            candidates.append(item)
        }
        if intent.kind == .createFolder || intent.reservedID != nil { return candidates.first }
        if intent.hash == nil {
            let meant = candidates.first { intent.size == nil || $0.size == intent.size }
            if let meant { return meant }
        }
        for candidate in candidates {
            if let meant = try await confirmed(candidate, as: intent, of: inode) { return meant }
        }
        return try await copied(by: intent, among: candidates)
    }

    /// A copy at the service of an original that somebody had changed by then: the candidate that has the
    /// original's present bytes, and a time as copies have it.
    ///
    /// Our bytes become its next revision, instead of a second file.
    private func copied(
        by intent: Intent,
        among candidates: [Item]
    ) async throws(ProviderError) -> Item? {
        guard !candidates.isEmpty, let original = intent.original else { return nil }
        do throws(ProviderError) {
            let now = try await provider.item(original)
            let (traits, resolution) = (provider.traits, provider.traits.timeResolution)
            return candidates.first { item in
                guard item.contentHash != nil, item.contentHash == now.contentHash,
                    let time = item.clientModifiedTime?.truncated(to: resolution)
                else { return false }
                // Where a copy's time can be set, it may not be set yet.
                let times =
                    traits.setsModifiedTime
                    ? [intent.modifiedTime, item.createdTime] : [now.clientModifiedTime]
                return times.contains { $0?.truncated(to: resolution) == time }
            }
        } catch {
            guard error.isLastingRefusal else { throw error }
            return nil
        }
    }

    /// The item as it is, if the operation was done to it; nil if not.
    private func done(
        _ intent: Intent,
        of inode: Inode,
        _ item: Item
    ) async throws(ProviderError) -> Item? {
        guard intent.kind == .replace else { return isDone(intent, item) ? item : nil }
        // The revision to be replaced is still there: nothing was done, and nothing need be read.
        let known = try stored { () throws(CatalogError) in try catalog.node(inode).revision }
        let mustRead = item.contentHash?.algorithm.tellsContentsApart != true
        if mustRead, let known, item.rev == known { return nil }
        return try await confirmed(item, as: intent, of: inode)
    }

    private func isDone(_ intent: Intent, _ item: Item) -> Bool {
        switch intent.kind {
        case .move:
            guard let name = intent.name, item.fileName.isSameText(as: name) else { return false }
            if let parent = item.parentID { return parent.rawValue == intent.folderID }
            guard let folder = item.path?.parent?.parts, let meant = intent.folderPath else {
                return false
            }
            return folder.elementsEqual(meant) { $0.isSameText(as: $1) }
        case .setAttributes:
            let resolution = provider.traits.timeResolution
            guard intent.modifiedTime != nil || intent.description != nil else { return false }
            if let time = intent.modifiedTime,
                item.clientModifiedTime?.truncated(to: resolution) != time.truncated(to: resolution)
            {
                return false
            }
            return intent.description.map { $0 == item.description ?? "" } ?? true
        case .createFolder, .upload, .duplicate, .replace, .delete: return false
        }
    }

    /// Forgets an intent: its operation was not sent, or not done.
    func clear(_ inode: Inode) async throws(ProviderError) {
        try await storedAsync { () throws(CatalogError) in
            try await self.catalog.failed(inode, nil, isUnknown: false)
        }
    }
}
