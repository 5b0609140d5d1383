import Foundation

/// The end of an account on this machine: its token is revoked, and it is forgotten.
struct SignOut: Sendable {
    /// The account, as the list has it or, where that was lost, the catalog.
    let account: RegisteredAccount
    private let accounts: Accounts
    private let control: ControlClient
    private let resting: RestingState
    private let surroundings: Surroundings

    /// A sign-out of the account of this name; nothing is changed yet.
    ///
    /// - Throws: `Failure` naming the accounts that there are.
    init(of name: String, _ surroundings: Surroundings) async throws {
        let accounts = try await Accounts(surroundings)
        let control = ControlClient(folders: surroundings.folders)
        let resting = RestingState(folders: surroundings.folders)
        let kept =
            control.isMountRunning ? try await control.keptAccounts() : try resting.keptAccounts()
        account = try accounts.account(named: name, kept: kept)
        self.surroundings = surroundings
        self.accounts = accounts
        self.control = control
        self.resting = resting
    }

    /// What would be lost for good: how much, and the paths, for people.
    func onlyHere() async throws -> (count: Int, lines: [String]) {
        let report =
            control.isMountRunning ? try await control.status() : try await resting.report()
        return StatusText.onlyHere(report, of: account.name)
    }

    /// Signs out; `most` is how much of what is only here the person saw and gives up.
    ///
    /// - Returns: what could not be done, for people.
    /// - Throws: `Failure` where more than that is only here; nothing is changed then.
    func run(givingUp most: Int) async throws -> String? {
        if most > 0, try await onlyHere().count > most { throw Self.hasMore(account.name) }
        // No work is given up before the sign-out is certain, and no account is signed out before it is
        // certain that nothing would be lost.
        let mounted = try? await control.status().mount?.mountPoint
        if most == 0 { try await forget(givingUp: most) }
        let warning = try await accounts.remove(account)
        if most > 0 { try await forget(givingUp: most) }
        await accounts.shutdown()
        try? await forgetThumbnails(of: mounted ?? surroundings.usualMountPoint)
        return warning
    }

    /// Takes away the services' small pictures of its files, which lie in a folder of the desktop's.
    private func forgetThumbnails(of mountPoint: String) async throws(Failure) {
        let thumbnails = ThumbnailFolder(
            environment: ProcessInfo.processInfo.environment,
            home: surroundings.folders.home
        )
        let name = account.name
        let usual = surroundings.usualMountPoint
        try await BlockingWork.run { () throws(Failure) in
            // The kernel's name of the mount point, and the person's.
            for top in Set([mountPoint, usual]) { thumbnails.forget(below: "\(top)/\(name)") }
        }
    }

    /// That more came to be only here than the person saw and gave up.
    static func hasMore(_ name: String) -> Failure {
        Failure(
            "\"\(name)\" has more that is only on this machine than was listed: all of it is kept.",
            advice: "Sign out once more with --discard, or sign in again and let it go out."
        )
    }

    /// Ends its connections.
    func close() async { await accounts.shutdown() }

    private func forget(givingUp most: Int) async throws {
        if control.isMountRunning {
            try await control.accountRemoved(account.name, givingUp: most)
        } else {
            try await resting.forget(accountNamed: account.name, givingUp: most)
        }
    }
}
