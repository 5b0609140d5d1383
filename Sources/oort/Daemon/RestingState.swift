import Foundation
import Logging
import OortCatalog
import OortModel

/// What is known of the accounts while no mount runs.
struct RestingState {
    let folders: Folders

    init(folders: Folders) { self.folders = folders }

    /// The accounts with what the catalog last heard of them.
    ///
    /// - Throws: `Failure` when the list of accounts or the catalog cannot be read.
    func report() async throws(Failure) -> StatusReport {
        var report = StatusReport(mount: nil, accounts: [])
        if let died = InstanceLock.holder(path: folders.lockFile), !died.mountPoint.isEmpty {
            report.died = DiedMount(
                mountPoint: died.mountPoint,
                process: died.process,
                log: folders.logFile
            )
        }
        let list = try AccountRegistry(folders: folders).list()
        let registered = list.accounts
        for account in registered {
            report.accounts.append(AccountStatus(KeptAccount(account)))
        }
        for entry in list.unusable {
            var status = AccountStatus(KeptAccount(entry))
            status.trouble = entry.trouble
            report.accounts.append(status)
        }
        report.accounts.sort { $0.name < $1.name }
        guard FileManager.default.fileExists(atPath: folders.catalogFile) else { return report }
        do throws(CatalogError) {
            let catalog = try openCatalog()
            for known in try catalog.accounts() {
                let kept = KeptAccount(known)
                let obstacle =
                    list.unusable.first { $0.name == known.name }?.trouble
                    ?? kept.obstacle(onList: registered.first { $0.name == known.name })
                guard let index = report.accounts.firstIndex(where: { $0.name == known.name })
                else {
                    var status = AccountStatus(kept)
                    try await complete(&status, with: known, of: catalog)
                    // The next mount forgets it.
                    if list.unusable.isEmpty, known.identity == nil, status.pendingCount == 0 {
                        continue
                    }
                    status.trouble = obstacle
                    report.accounts.append(status)
                    continue
                }
                try await complete(&report.accounts[index], with: known, of: catalog)
                guard let obstacle else { continue }
                report.accounts[index].person = kept.person
                report.accounts[index].trouble = obstacle
            }
            try catalog.close()
        } catch {
            throw CatalogTrouble.failure(error, path: folders.catalogFile)
        }
        report.accounts.sort { $0.name < $1.name }
        return report
    }

    /// The accounts that the catalog has, on the list of accounts or not.
    ///
    /// - Throws: `Failure` when the catalog cannot be read.
    func keptAccounts() throws(Failure) -> [KeptAccount] {
        guard FileManager.default.fileExists(atPath: folders.catalogFile) else { return [] }
        do throws(CatalogError) {
            let catalog = try openCatalog()
            let kept = try catalog.accounts().map { KeptAccount($0) }
            try catalog.close()
            return kept
        } catch {
            throw CatalogTrouble.failure(error, path: folders.catalogFile)
        }
    }

    /// The conflicts that are not ended; paths begin with the account's name.
    ///
    /// The folder or file whose conflicts are wanted, nil for all, is as typed: a path below where the
    /// mount usually is, or one that begins with an account.
    ///
    /// - Throws: `Failure` for a path that is not known, and when the catalog cannot be read.
    func conflicts(
        below path: String?,
        usuallyAt mountPoint: String
    ) async throws(Failure) -> [ConflictReport] {
        guard FileManager.default.fileExists(atPath: folders.catalogFile) else {
            if let path { throw notKnown(path, mountPoint) }
            return []
        }
        let names = path.map { Self.names($0, mountPoint) } ?? []
        var isKnown = true
        do throws(CatalogError) {
            let catalog = try openCatalog()
            var found: [ConflictReport] = []
            isKnown = try catalog.node(atPath: names) != nil
            for account in try catalog.accounts() {
                for conflict in try await catalog.conflicts(account.id) {
                    found.append(
                        ConflictReport(
                            conflict,
                            account: account.name,
                            below: account.name,
                            author: try catalog.details(of: conflict.original.inode)?.modifiedBy
                        )
                    )
                }
            }
            try catalog.close()
            if isKnown {
                let place = MountPoint(standardized: names.joined(separator: "/"))
                return found.filter {
                    names.isEmpty || place.holds($0.theirs.path) || place.holds($0.mine.path)
                }
            }
        } catch {
            throw CatalogTrouble.failure(error, path: folders.catalogFile)
        }
        throw notKnown(path ?? "", mountPoint)
    }

    private func notKnown(_ path: String, _ mountPoint: String) -> Failure {
        Failure(
            "No mount is running, and nothing is known of \(TerminalText.line(path)).",
            advice: "Name a path below \(TerminalText.line(mountPoint)), or one that begins with "
                + "an account's name."
        )
    }

    /// What is kept on this machine; paths begin with the account's name.
    ///
    /// - Throws: `Failure` when the catalog cannot be read.
    func pins() async throws(Failure) -> [PinReport] {
        guard FileManager.default.fileExists(atPath: folders.catalogFile) else { return [] }
        do throws(CatalogError) {
            let catalog = try openCatalog()
            var reports: [PinReport] = []
            for pin in try await catalog.pins(at: Timestamp.now.inMilliseconds) {
                let path = try InodePaths(catalog, below: "").path(of: pin.inode) ?? ""
                let sums = try await catalog.keepSums(of: pin.inode)
                reports.append(PinReport(pin, path: path, sums: sums))
                let isComplete = reports[reports.count - 1].progress.isComplete
                if !isComplete {
                    reports[reports.count - 1].progress.waits = "waits for the next mount"
                }
            }
            try catalog.close()
            return reports
        } catch {
            throw CatalogTrouble.failure(error, path: folders.catalogFile)
        }
    }

    /// The paths of inodes, each beginning with its account's name.
    ///
    /// - Throws: `Failure` when the catalog cannot be read.
    func paths(of inodes: [UInt64]) throws(Failure) -> [String: String] {
        guard FileManager.default.fileExists(atPath: folders.catalogFile) else { return [:] }
        do throws(CatalogError) {
            let catalog = try openCatalog()
            let paths = try InodePaths(catalog, below: "").paths(of: inodes)
            try catalog.close()
            return paths
        } catch {
            throw CatalogTrouble.failure(error, path: folders.catalogFile)
        }
    }

    /// Removes an account that is being signed out from the catalog: the next sign-in under its name must
    /// find neither its tree nor its cursor.
    ///
    /// - Throws: `Failure` when its cloud lacks more items than may be given up, or a mount began
    ///   meanwhile; nothing is changed then.
    func forget(accountNamed name: String, givingUp most: Int) async throws(Failure) {
        guard FileManager.default.fileExists(atPath: folders.catalogFile) else { return }
        let lock = try InstanceLock(path: folders.lockFile, mounting: "")
        defer { withExtendedLifetime(lock) {} }
        var unsent = 0
        var held = 0
        var isRemoved = true
        do throws(CatalogError) {
            let catalog = try openCatalog()
            let known = try catalog.accounts().first { $0.name == name }
            if let known {
                unsent = try await catalog.pendingCount(known.id)
                held = try await catalog.heldCount(known.id)
                isRemoved = try catalog.removeAccount(known.id, losingAtMost: most)
                try catalog.persist()
            }
            try catalog.close()
        } catch {
            throw CatalogTrouble.failure(error, path: folders.catalogFile)
        }
        guard !isRemoved else { return }
        throw Self.refusal(unsent, held, givingUp: most, of: name, isMounted: false)
    }

    /// Why an account is not signed out that has so much that its cloud does not have.
    static func refusal(
        _ unsent: Int,
        _ held: Int,
        givingUp most: Int,
        of name: String,
        isMounted: Bool
    ) -> Failure {
        guard most == 0 else {
            return SignOut.hasMore(name)
        }
        return unsent > 0
            ? Self.unsent(unsent, of: name, isMounted: isMounted) : Self.held(held, of: name)
    }

    /// Why an account is not signed out in which something stays here by rules.
    static func held(_ count: Int, of name: String) -> Failure {
        Failure(
            "\"\(name)\": \(StatusText.staying(count)), and would be lost.",
            advice: "Copy what you need elsewhere, and remove it from the mount; or take the rules "
                + "out of the settings (ignore), mount, and let it go out. To lose it: --discard"
        )
    }

    /// Why an account is not signed out.
    static func unsent(_ count: Int, of name: String, isMounted: Bool) -> Failure {
        let changes = count == 1 ? "a change" : "\(count) changes"
        return Failure(
            "\"\(name)\" has \(changes) that the cloud does not have yet.",
            advice: "Let \(count == 1 ? "it" : "them") go out first ("
                + (isMounted ? "oort sync" : "oort mount, then oort sync")
                + "), or copy the files elsewhere and remove them from the mount; "
                + "oort status lists them. To give them up: oort logout \(Shell.quoted(name)) "
                + "--discard"
        )
    }

    func openCatalog() throws(CatalogError) -> Catalog {
        try Catalog(
            path: folders.catalogFile,
            cachedNodes: 16,
            logger: Logger(label: "oort") { _ in SwiftLogNoOpLogHandler() }
        )
    }

    private func complete(
        _ status: inout AccountStatus,
        with known: Account,
        of catalog: Catalog
    ) async throws(CatalogError) {
        status.trouble = known.trouble
        status.usedBytes = known.quota?.used
        status.totalBytes = known.quota?.total
        status.pendingCount = try await catalog.pendingCount(known.id)
        let held = try await catalog.heldCount(known.id)
        status.staysHere = held > 0 ? held : nil
        let now = Date()
        status.pending = try await catalog.pending(known.id, limit: 1000).map { item in
            var change = SyncWords.change(item, below: known.name, now: now)
            change.next = "waits for the next mount"
            return change
        }
        let survey = try await catalog.surveyPending(
            known.id,
            examples: 3,
            isRefused: { _ in false },
            kind: { _, _ in true }
        )
        status.waiting = survey.groups.values.map { group in
            PendingGroup(
                count: group.count,
                bytes: group.bytes,
                isUnderWay: false,
                needsPerson: false,
                next: "waits for the next mount",
                examples: group.examples.map { item in
                    PendingExample(path: ([known.name] + item.path).joined(separator: "/"))
                }
            )
        }
        status.pendingBytes = survey.groups.values.reduce(0) { $0 + $1.bytes }
        status.conflicts = try await catalog.conflicts(known.id).map { conflict in
            ([known.name] + conflict.path).joined(separator: "/")
        }
    }
}

/// What Oort says to a person about a catalog that cannot be opened, or fails.
enum CatalogTrouble {
    /// The words for what a mounted catalog met, with what to do.
    static func words(_ error: CatalogError, path: String) -> String {
        switch error {
        case .corrupt:
            "the catalog \(path) is damaged, and what is shown may be wrong or missing: unmount (oort "
                + "unmount), move it and its -wal and -shm files away, and mount again: the tree is "
                + "read anew, and what was not uploaded is kept in a folder that oort status names"
        case .diskFull:
            "there is no room on the disk for the catalog \(path): make some; nothing is lost"
        default:
            "the disk of the catalog \(path) fails (\(error)): check it; nothing can be changed "
                + "until it works"
        }
    }

    /// The words for an error of the catalog's.
    static func failure(_ error: CatalogError, path: String) -> Failure {
        switch error {
        case .corrupt:
            Failure(
                "The catalog \(path) is damaged.",
                advice: "Move it and its -wal and -shm files away and mount again: the tree is "
                    + "read anew. What was not uploaded is in the folder \"staged\" beside it; "
                    + "that mount keeps it under another name, which `oort status` shows."
            )
        case .tooNew:
            Failure(
                "The catalog \(path) was written by a newer Oort.",
                advice: "Install that version again, or a newer one."
            )
        case .diskFull:
            Failure(
                "There is no room on the disk for the catalog \(path).",
                advice: "Free some space and try again; nothing is lost."
            )
        default:
            Failure(
                "The catalog \(path) cannot be opened: \(error).",
                advice: "Check the disk and the permissions of its folder."
            )
        }
    }
}
