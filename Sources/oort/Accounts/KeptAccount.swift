import OortCatalog

/// An account of which files, or changes that its cloud does not have, are kept on this computer.
///
/// The catalog decides whose a name is: the list of accounts may have been lost, edited or brought
/// from elsewhere, and nothing that is kept may go to another person's cloud.
struct KeptAccount: Codable, Hashable, Sendable {
    /// The user's name for it.
    var name: String
    /// The service's name.
    var service: String
    /// The service's stable key of the account; nil before the service reported it.
    var identity: String?
    /// Whose it is, for people.
    var person: String?

    /// An account as the catalog has it.
    init(_ account: Account) {
        name = account.name
        service = account.service
        identity = account.identity
        person = account.email ?? account.displayName
    }

    /// An account as it is on the list, of which nothing may be kept yet.
    init(_ account: RegisteredAccount) {
        name = account.name
        service = account.service
        identity = account.identity
        person = account.email ?? account.displayName
    }

    /// An account of which the list has an entry that cannot be used.
    init(_ entry: UnusableAccount) {
        name = entry.name ?? entry.title
        service = entry.service ?? "unknown service"
        identity = nil
        person = nil
    }

    /// Whether a sign-in under this name is certainly not this account's.
    func isAnother(than account: RegisteredAccount) -> Bool {
        service != account.service
            || identity != nil && account.identity != nil && identity != account.identity
    }

    /// What keeps its changes here, for people; nil when the list has it as it is kept.
    func obstacle(onList registered: RegisteredAccount?) -> String? {
        let login = "oort login \(service) --name \(Shell.quoted(name))"
        guard let registered else {
            return "Not signed in. What you change is kept. Sign in again"
                + (person.map { " as \($0)" } ?? "") + ": \(login)"
        }
        guard isAnother(than: registered) else { return nil }
        let other = KeptAccount(registered).person ?? registered.service
        let owner = person ?? service
        return "The files here are of \(owner), but \(other) signed in under this name: nothing "
            + "goes out. Sign in as \(owner): \(login) - and give the other account a name of its "
            + "own with --name."
    }
}
