import Logging
import OortCatalog
import OortContentStore
import OortModel

/// What failures mean, and what is done about operations whose answer never came.
extension SyncEngine {
    /// Decides what a failure means, and stores it.
    func conclude(
        _ start: OperationStart,
        of inode: Inode,
        _ error: ProviderError
    ) async {
        let tries = (failures[inode] ?? 0) + 1
        failures[inode] = tries
        var wait = backoff(after: tries, error)
        var isUnknown = error.isOutcomeUnknown
        var looksAt = false
        var isSessionLost = false
        var isRefused = false
        switch error.kind {
        case .cancelled where Task.isCancelled:
            // The engine ends: the next one asks.
            return
        case .offline, .signedOut, .clientRefused:
            note(error)
            wait = .zero
            failures[inode] = tries - 1
        case .rateLimited:
            pausedUntil = now + wait.inMilliseconds
            wake(at: pausedUntil)
            failures[inode] = tries - 1
        case .sessionLost:
            isSessionLost = true
            wait = .zero
        case .preconditionFailed, .notFound, .parentNotFound, .nameTaken, .notAFolder, .notAFile,
            .moveIntoItself:
            looksAt = true
            wait = tries > 2 ? wait : .zero
        case .noPermission, .contentBlocked, .limitExceeded, .tooLarge, .unsupported, .badRequest:
            let isCopy = start.original != nil
            isRefused = true
            wait = isCopy && uncopied.insert(inode).inserted ? .zero : settings.refusalInterval
        case .nameRefused, .nameTooLong, .quotaExceeded: wait = settings.refusalInterval
        case .localContent:
            // The bytes are not to be had: the service may make the copy by now.
            if start.original == nil { uncopied.remove(inode) }
        case .contentDamaged:
            if start.original == nil, isDamagedForGood(start, inode) { wait = Self.damagePause }
        case .cursorLost, .locked, .outcomeUnknown, .malformedAnswer, .cancelled: break
        }
        if case .noPermission = error.kind {
            denials.formUnion([start.item, start.parent].compactMap { $0?.id })
        }
        if start.original != nil, tries > 3, error.kind != .quotaExceeded { uncopied.insert(inode) }
        if case .contentDamaged = error.kind {
            isUnknown = false
            looksAt = error.item == nil
        }
        if isUnknown { hasOpenIntents = true }
        logger.info(
            "an operation failed",
            metadata: [
                "inode": "\(inode)", "operation": "\(start.intent.kind)", "error": "\(error)",
            ]
        )
        let trouble = PushTrouble(
            kind: "\(error.kind)",
            detail: error.detail,
            nextTry: now + wait.inMilliseconds
        )
        do throws(CatalogError) {
            if isSessionLost { try await catalog.setSession(nil, of: inode) }
            try await catalog.failed(inode, trouble, isUnknown: isUnknown)
        } catch {
            // The intent stays: the service is asked at the next try.
            logger.error("a failure could not be stored", metadata: ["error": "\(error)"])
            hasOpenIntents = true
            wake(at: now + 1000)
        }
        if isRefused, start.intent.kind == .delete { await takeBackDeletion(of: inode, error) }
        if looksAt {
            if start.intent.reservedID != nil { await settleReservedID(start.intent, of: inode) }
            await lookAfter(start)
        }
        if wait > .zero { wake(at: now + wait.inMilliseconds) }
    }

    /// What the service will not delete is shown again, with all that was removed with it: it is still
    /// there, and would be hidden for as long as its deletion waited.
    private func takeBackDeletion(of inode: Inode, _ error: ProviderError) async {
        do throws(CatalogError) {
            guard let names = try await catalog.takeBackDeletion(of: inode) else { return }
            failures[inode] = nil
            let path = names.joined(separator: "/")
            logger.warning(
                "a deletion was refused, and what was removed is shown again",
                metadata: ["path": "\(path)", "error": "\(error)"]
            )
            refusedDeletions.append((path, error.detail, now))
            refusedDeletions.removeFirst(max(0, refusedDeletions.count - Self.mostRefusedDeletions))
        } catch {
            // It is tried again, and brought back then.
            logger.error("a refused deletion stays hidden", metadata: ["error": "\(error)"])
        }
    }

    /// What was not deleted in the last hour, and why, in words; the newest first.
    var wordsOnRefusedDeletions: [String] {
        let now = now
        return refusedDeletions.reversed().filter { now - $0.time < 3_600_000 }.map {
            "\($0.path) was not deleted and is shown again: \($0.reason)"
        }
    }

    private static let mostRefusedDeletions = 20

    /// Counts an answer that content arrived damaged; whether that is enough of them for this content.
    ///
    /// Each one that is sent again is a revision, of which the service keeps so many.
    private func isDamagedForGood(_ start: OperationStart, _ inode: Inode) -> Bool {
        let hash = start.intent.hash
        let known = damages[inode].flatMap { $0.hash == hash ? $0.count : nil } ?? 0
        damages[inode] = (hash, known + 1)
        return known + 1 >= 3
    }

    /// How long content rests that the service damages each time: it goes out before when it changes,
    /// or when somebody asks for it.
    private static let damagePause = Duration.seconds(365 * 86_400)

    /// A refused creation may have used up its reserved id, in a folder that was in the trash, say:
    /// the item is ours where it can be found, and else is created with another id.
    private func settleReservedID(_ intent: Intent, of inode: Inode) async {
        do throws(ProviderError) {
            if let found = try await created(by: intent, of: inode) {
                return try await record(found, as: intent, of: inode)
            }
            try await storedAsync { () throws(CatalogError) in
                try await self.catalog.forgetReservedID(of: inode)
            }
        } catch {
            logger.info("a reserved id was not settled", metadata: ["error": "\(error)"])
        }
    }

    /// After a refusal: what the service has where the operation went, and of its item.
    private func lookAfter(_ start: OperationStart) async {
        do throws(ProviderError) {
            if let item = start.item { try await look(at: item) }
            if let parent = start.parent { try await look(at: parent) }
            if let original = start.original { try await look(at: original) }
            if let parent = start.parent, let name = start.intent.name {
                let enumeration = try await enumeration()
                let began = nextOrdinal()
                let found = try await provider.items(named: name, in: parent)
                var observations = Observations(changes: found.map { .changed($0) })
                observations.enumeration = enumeration
                observations.suspects = suspects(since: began)
                observations.endsRun = false
                _ = try await storedAsync { [observations] () throws(CatalogError) in
                    try await self.catalog.apply(observations, to: self.account)
                }
            }
        } catch {
            logger.info("looking again did not work", metadata: ["error": "\(error)"])
        }
    }

    /// Asks the service about everything that was sent and never answered.
    func resolveIntents() async {
        guard hasOpenIntents, pausedUntil <= now else { return }
        hasOpenIntents = false
        isResolving = true
        defer { isResolving = false }
        let open: [Inode]
        do throws(CatalogError) { open = try await catalog.openIntents(of: account) } catch {
            logger.error("what was asked could not be read", metadata: ["error": "\(error)"])
            hasOpenIntents = true
            wake(at: now + 1000)
            return
        }
        var hasAsked = false
        for inode in open {
            let isFeedAwaited = missing[inode].map { lastRun < $0 } ?? false
            guard running[inode] == nil, nextLooks[inode] ?? 0 <= now, !isFeedAwaited else {
                hasOpenIntents = true
                continue
            }
            do throws(ProviderError) {
                // Read now: what was under way before may have been answered since.
                let stored = try await storedAsync { () throws(CatalogError) in
                    try await self.catalog.intent(of: inode)
                }
                guard let (intent, item) = stored else {
                    missing[inode] = nil
                    continue
                }
                hasAsked = true
                switch try await resolve(intent, of: inode, item) {
                case .done: failures[inode] = nil
                case .notDone: break
                case .notKnown:
                    hasOpenIntents = true
                    continue
                }
                nextLooks[inode] = nil
                needsPlan = true
            } catch {
                note(error)
                hasOpenIntents = true
                let tries = (failures[inode] ?? 0) + 1
                failures[inode] = tries
                let wait = backoff(after: tries, error)
                nextLooks[inode] = now + wait.inMilliseconds
                wake(at: now + wait.inMilliseconds)
            }
        }
        // What could not be asked for now is asked for with the next news.
        isResolving = false
        guard hasAsked || !owedLooks.isEmpty || owesRun else { return }
        do throws(ProviderError) { try await lookAtUnsure() } catch { note(error) }
    }

    /// What became of something that was asked.
    private enum Outcome {
        case done, notDone
        /// The feed has to be read first, after which this is asked again.
        case notKnown
    }

    /// Finds out what became of something that was asked.
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
                touched[item.id] = nextOrdinal()
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
        touched[answer.id] = nextOrdinal()
        _ = try await storedAsync { () throws(CatalogError) in
            try await self.catalog.succeeded(
                intent,
                of: inode,
                item: answer,
                sentModified: answer.clientModifiedTime
            )
        }
        return .done
    }

    /// Finds out what became of something that was to be created.
    private func resolveCreation(
        _ intent: Intent,
        of inode: Inode
    ) async throws(ProviderError) -> Outcome {
        var found = try await created(by: intent, of: inode)
        if found == nil, intent.kind == .upload, intent.reservedID == nil,
            let upload = intent.upload
        {
            // Somebody may have moved it away: the feed tells.
            let since = missing[inode] ?? nextOrdinal()
            missing[inode] = since
            guard lastRun >= since else {
                readFeedSoon()
                return .notKnown
            }
            found = try await movedAway(upload, intent, of: inode)
        }
        missing[inode] = nil
        guard let found else {
            try await clear(inode)
            return .notDone
        }
        try await record(found, as: intent, of: inode)
        return .done
    }

    /// Stores that something was created, as it was then; what others did to it since is news.
    private func record(
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
        // Where other bytes are there, and ours never were, they are what both sides agree on, and ours
        // go out in place of them.
        if let upload = intent.upload, item.contentHash != upload.hash,
            try await provider.isOutcome(item, of: upload)
        {
            created.contentHash = upload.hash
            created.size = intent.size ?? item.size
            created.rev = item.rev.map { Revision("\($0.rawValue) as sent") }
            created.clientModifiedTime = upload.modifiedTime
        }
        let isOlder =
            !created.fileName.isSameText(as: item.fileName) || created.parentID != item.parentID
            || created.path != item.path || created.rev != item.rev
        touched[item.id] = nextOrdinal()
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

    /// What an upload made and somebody moved away before it was asked for.
    ///
    /// Of several that it may be it is none: a file that is taken for another one follows that.
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
                // One that a program is about to change is left alone.
                let known = try stored { () throws(CatalogError) in
                    try catalog.node(remoteID: newcomer.id, account: account)
                }
                if let inode = known?.inode, store.writers.isOpen(inode) { continue }
                let item = try await provider.item(newcomer)
                guard try await provider.isOutcome(item, of: upload) else { continue }
                // Where no hash tells, the provider went by what else is known of it.
                if item.contentHash?.algorithm.tellsContentsApart == true {
                    found.append(item)
                } else if let confirmed = try await confirmed(item, as: intent, of: inode) {
                    found.append(confirmed)
                }
            } catch {
                // What is refused for good tells nothing: at the worst the file goes out again.
                guard error.isLastingRefusal else { throw error }
            }
        }
        return found.count == 1 ? found[0] : nil
    }

    /// What an operation that created something left at the service, if it was done.
    private func created(
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
            // What is known already is not what was lost; a catalog that cannot be read says neither.
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

    /// What a copy at the service made of an original that somebody had changed by then: what has the
    /// bytes that the original has now, and a time as copies have it.
    ///
    /// Ours are its next revision, where otherwise they would be a second file.
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
                // Its own time is given to it when it is there already.
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

    /// The item as it is, where what was asked was done to it; nil where it was not.
    private func done(
        _ intent: Intent,
        of inode: Inode,
        _ item: Item
    ) async throws(ProviderError) -> Item? {
        guard intent.kind == .replace else { return isDone(intent, item) ? item : nil }
        // The revision that was to be replaced is still there: nothing was done, and nothing need be read.
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

    /// What was stored as asked of the service was not asked, or not done.
    func clear(_ inode: Inode) async throws(ProviderError) {
        try await storedAsync { () throws(CatalogError) in
            try await self.catalog.failed(inode, nil, isUnknown: false)
        }
    }
}
