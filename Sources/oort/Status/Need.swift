import OortModel

/// One thing that waits for a person: what notices, the icon and the exit code of `oort status` say.
struct Need: Codable, Hashable, Sendable {
    /// What it is about: the same for as long as its cause is there, and over restarts.
    var key: String
    /// One line, for people.
    var title: String
    /// A sentence or two: what happened, and what to do.
    var words: String
    /// Both in one line, as short as can be.
    var line: String
    /// The path that it is about, if there is one.
    var path: String?
    /// The folder in which to look; nil where looking helps nothing.
    var folder: String?
    /// The account's name, where it is one account's.
    var account: String?
    /// Whether nothing goes on until a person acts.
    var isUrgent = false
    /// Whether the account is to be signed in to.
    var isSignIn = false
    /// Whether it is one conflict.
    var isConflict = false
    /// How many seconds after its cause was last seen it counts as the same one.
    var memory = 60

    private enum CodingKeys: CodingKey {
        case key, title, words, line, path, folder, account, isUrgent, isSignIn, isConflict
    }
}

extension Need {
    /// All that waits for a person, most urgent first.
    static func all(in report: StatusReport) -> [Need] {
        guard let mount = report.mount else { return [] }
        var needs: [Need] = []
        if let trouble = mount.trouble {
            needs.append(
                Need(
                    key: "disk",
                    title: "Your files cannot be written",
                    words: trouble,
                    line: "Your files cannot be written: \(trouble)",
                    folder: mount.mountPoint,
                    isUrgent: true,
                    // While room comes and goes it is one trouble.
                    memory: 600
                )
            )
        }
        needs += (mount.foldersAside ?? []).map { folder in
            Need(
                key: "aside/\(folder)",
                title: "Something is only on this machine",
                words: "What was not uploaded when the catalog was lost was put aside. Look "
                    + "through it for what you miss, then remove the folder.",
                line: "Put aside, and not in the cloud: \(folder)",
                path: folder,
                folder: folder
            )
        }
        if let folder = mount.foundBeneath {
            needs.append(
                Need(
                    key: "beneath/\(folder)",
                    title: "Something is only on this machine",
                    words: "Programs wrote at the mount point before it was mounted. Copy what you "
                        + "need of it into an account, then remove the folder.",
                    line: "Written before the mount, and not in the cloud: \(folder)",
                    path: folder,
                    folder: folder
                )
            )
        }
        if let words = StatusText.keptAboveLimit(mount) {
            let title = "More is pinned than the cache may have"
            needs.append(Need(key: "pins", title: title, words: words, line: title))
        }
        for account in report.accounts {
            let folder = "\(mount.mountPoint)/\(account.name)"
            needs += troubles(account, folder) + refusals(account, folder) + conflicts(account)
        }
        return needs
    }

    /// What keeps the account as a whole from its service.
    private static func troubles(_ account: AccountStatus, _ folder: String) -> [Need] {
        guard account.state != .offline, account.state == .trouble || account.trouble != nil else {
            return []
        }
        let isSignIn = account.signIn != nil
        let trouble = account.trouble ?? "nothing goes to its service"
        let pending =
            account.pendingCount > 0
            ? " Only on this machine: \(StatusText.changes(account.pendingCount))." : ""
        return [
            Need(
                key: "\(isSignIn ? "sign-in" : "account")/\(account.name)",
                title: isSignIn ? "\(account.name) is signed out" : "\(account.name) needs you",
                words: trouble + pending,
                line: "\(account.name): \(trouble)",
                folder: isSignIn ? folder : nil,
                account: account.name,
                isUrgent: isSignIn || account.pendingCount > 0,
                isSignIn: isSignIn
            )
        ]
    }

    /// What goes out only when a person acts, one for each reason.
    private static func refusals(_ account: AccountStatus, _ folder: String) -> [Need] {
        let full = SyncWords.errorWords("\(ProviderError.Kind.quotaExceeded)")
        // For an account without a sign-in, only that is said.
        guard account.state != .trouble else { return [] }
        var groups = (account.waiting ?? []).filter(\.needsPerson)
        if groups.isEmpty, account.state == .attention || account.refusedCount ?? 0 > 0 {
            groups = [
                PendingGroup(
                    count: account.refusedCount ?? account.pendingCount,
                    bytes: 0,
                    isUnderWay: false,
                    needsPerson: true,
                    next: "oort status says why",
                    examples: []
                )
            ]
        }
        return groups.map { group in
            let reason = group.reason ?? group.next
            let example = group.examples.first?.path
            let count = group.count == 1 ? "1 change is" : "\(group.count) changes are"
            return Need(
                key: "refused/\(account.name)/\(reason)",
                title: reason == full
                    ? "\(account.name) is full" : "Not everything goes to \(account.name)",
                words: "\(count) only on this machine: \(reason).",
                line: "\(account.name): \(count) only here: \(reason)",
                path: example,
                folder: example.map(Self.folder) ?? folder,
                account: account.name,
                isUrgent: reason == full,
                // It is not seen while it is tried again, every ten minutes.
                memory: 3600
            )
        }
    }

    private static func conflicts(_ account: AccountStatus) -> [Need] {
        account.conflicts.map { path in
            let name = path.cut(atLast: "/").map { String($0.after) } ?? path
            return Need(
                key: "conflict/\(path)",
                title: "Two versions in \(account.name)",
                words: "A file was changed here and in the cloud. Yours is kept beside the "
                    + "cloud's:",
                line: "Two versions in \(account.name): \(name)",
                path: path,
                folder: folder(of: path),
                account: account.name,
                isConflict: true
            )
        }
    }

    private static func folder(of path: String) -> String {
        path.cut(atLast: "/").map { String($0.before) } ?? path
    }
}
