import Logging
import OortCatalog
import OortContentStore
import OortModel

/// What failures mean.
extension SyncEngine {
    /// Decides what a failure means, and stores it.
    func conclude(
        _ start: OperationStart,
        of inode: Inode,
        _ error: ProviderError
    ) async {
        let tries = failures.failed(inode)
        feed.failed(inode)
        var wait = backoff(after: tries, error)
        var isUnknown = error.isOutcomeUnknown
        /// Whether the operation failed by itself, and not with the whole account.
        var isOwn = true
        var looksAt = false
        var isSessionLost = false
        var isRefused = false
        /// Whether the operation is not tried again by itself: content that arrives damaged each time is
        /// sent again when it changes, or when a person asks for it.
        var isGivenUp = false
        switch error.kind {
        case .cancelled where Task.isCancelled:
            // The engine ends: the next engine asks what became of the operation.
            return
        case .offline, .signedOut, .clientRefused:
            note(error)
            wait = .zero
            isOwn = false
        case .rateLimited:
            rest(for: wait)
            isOwn = false
        case .sessionLost:
            isSessionLost = true
            wait = .zero
        case .preconditionFailed, .notFound, .parentNotFound, .nameTaken, .notAFolder, .notAFile,
            .moveIntoItself:
            looksAt = true
            wait = tries > 2 ? wait : .zero
            // Each try had news of its own, and the service still has something in the folder that it does not
            // report: what is hidden here would be so for ever, and so would its name be taken.
            isRefused =
                error.kind == .preconditionFailed && start.holdsNothing
                && tries >= Self.mostTriesOfEmpty
        case .noPermission, .contentBlocked, .limitExceeded, .tooLarge, .unsupported, .badRequest:
            let isCopy = start.original != nil
            isRefused = true
            // A deletion keeps the shorter wait: until its second answer its item is hidden.
            if isCopy, failures.sendsBytes(inode) {
                wait = .zero
            } else if start.intent.kind != .delete {
                wait = settings.refusalInterval
            }
        case .nameRefused, .nameTooLong, .quotaExceeded: wait = settings.refusalInterval
        case .localContent:
            // The bytes cannot be read: the service may be asked for a copy again.
            if start.original == nil { failures.copies(inode) }
        case .contentDamaged:
            if start.original == nil, failures.arrivedDamaged(inode, hash: start.intent.hash) {
                isGivenUp = true
                wait = .zero
            }
        case .cursorLost, .locked, .outcomeUnknown, .malformedAnswer, .cancelled: break
        }
        if !isOwn { failures.pardon(inode) }
        if case .noPermission = error.kind {
            denials.formUnion([start.item, start.parent].compactMap { $0?.id })
        }
        if start.original != nil, tries > 3, error.kind != .quotaExceeded {
            failures.sendsBytes(inode)
        }
        if case .contentDamaged = error.kind {
            isUnknown = false
            looksAt = error.item == nil
        }
        if isUnknown { unanswered.mayExist = true }
        logger.info(
            "an operation failed",
            metadata: [
                "inode": "\(inode)", "operation": "\(start.intent.kind)", "error": "\(error)",
            ]
        )
        let trouble = PushTrouble(
            kind: "\(error.kind)",
            detail: error.detail,
            nextTry: isGivenUp ? WaitMoment.never : now + wait.inMilliseconds,
            isAnswer: isOwn && !error.isOutcomeUnknown
        )
        do throws(CatalogError) {
            if isSessionLost { try await catalog.setSession(nil, of: inode) }
            try await catalog.failed(inode, trouble, isUnknown: isUnknown)
        } catch {
            // The intent stays: the service is asked at the next try.
            logger.error("a failure could not be stored", metadata: ["error": "\(error)"])
            unanswered.mayExist = true
            wake(at: now + 1000)
        }
        if isRefused, start.intent.kind == .delete { await takeBackDeletion(of: inode, error) }
        if looksAt {
            if start.intent.reservedID != nil { await settleReservedID(start.intent, of: inode) }
            await lookAfter(start)
        }
        if wait > .zero { wake(at: now + wait.inMilliseconds) }
    }

    /// After how many tries a folder is not empty at the service, whatever it reports: what it says of many items
    /// may lag for some minutes.
    private static let mostTriesOfEmpty = 8

    /// Shows again what the service refused to delete, with all that was removed with it: it is still
    /// there, and would be hidden for as long as its deletion waited.
    private func takeBackDeletion(of inode: Inode, _ error: ProviderError) async {
        do throws(CatalogError) {
            guard let names = try await catalog.takeBackDeletion(of: inode) else { return }
            failures.forget(inode)
            let path = names.joined(separator: "/")
            logger.warning(
                "a deletion was refused, and what was removed is shown again",
                metadata: ["path": "\(path)", "error": "\(error)"]
            )
            refusedDeletions.add(path, reason: error.detail, at: now)
        } catch {
            // The deletion is tried again, and its item is shown then.
            logger.error("a refused deletion stays hidden", metadata: ["error": "\(error)"])
        }
    }

    /// A refused creation may have used up its reserved id, for instance in a folder that was in the trash:
    /// an item that is found with the id is ours; otherwise the next try has another id.
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

    /// Asks, after a refusal, what the service has where the operation went, and what became of its item.
    private func lookAfter(_ start: OperationStart) async {
        do throws(ProviderError) {
            if let item = start.item { try await look(at: item) }
            if let parent = start.parent { try await look(at: parent) }
            if let original = start.original { try await look(at: original) }
            if let parent = start.parent, let name = start.intent.name {
                try await find(name, in: parent)
            }
        } catch {
            logger.info("looking again did not work", metadata: ["error": "\(error)"])
        }
    }
}
