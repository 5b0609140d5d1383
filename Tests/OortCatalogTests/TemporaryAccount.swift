import OortCatalog
import OortModel
import OortPlanner

/// A catalog of one account, whose person and root are known, without an engine.
struct TemporaryAccount {
    let temporary: TemporaryCatalog
    let account: Account
    private let planner: Planner

    var catalog: Catalog { temporary.catalog }

    /// `setsTimes` says whether the service takes modified times.
    init(
        service: String = "dropbox",
        names: NameRules = Rules.folding,
        setsTimes: Bool = false
    ) throws {
        temporary = try TemporaryCatalog()
        account = try temporary.catalog.registerAccount(
            name: "work",
            service: service,
            names: names
        )
        try temporary.catalog.setIdentity(
            AccountIdentity(id: "me", displayName: "Me", email: nil, rootID: ItemID("root")),
            of: account.id
        )
        var traits = PlannerTraits(
            comparison: names.comparison,
            allowsDuplicates: names.allowsDuplicates
        )
        traits.setsModifiedTime = setsTimes
        planner = Planner(traits: traits)
    }

    /// A page of the feed.
    func page(
        _ changes: [Change],
        endsRun: Bool = true,
        with change: (inout Observations) -> Void = { _ in }
    ) async throws {
        var observations = Observations(changes: changes)
        observations.cursor = OortModel.Cursor("c")
        observations.endsRun = endsRun
        change(&observations)
        _ = try await catalog.apply(observations, to: account.id)
    }

    /// Merges all news, as the engine does after each page; what is to be sent then.
    @discardableResult
    func plan() async throws -> [RemoteOperation] { try await planned().operations }

    /// Plans at a moment, of what has rested for so long, both in milliseconds, and gives all that the plan
    /// says.
    func planned(
        at now: Int64 = Timestamp.now.seconds * 1000,
        settle: Int64 = 0
    ) async throws -> PlannedWork {
        try await catalog.plan(
            account.id,
            with: planner,
            under: PlanningConditions(
                now: now,
                settle: settle,
                hash: { ContentHash(algorithm: .md5, value: String($0.count)) }
            )
        )
    }
}

extension Change {
    /// An item that is reported by its path, as Dropbox does; a folder where that ends with a slash.
    static func told(_ path: String, _ id: String) -> Change {
        let parts = path.split(separator: "/").map(String.init)
        let isFolder = path.hasSuffix("/")
        var item = Item(
            id: ItemID(id),
            kind: isFolder ? .folder : .file,
            fileName: parts.last ?? ""
        )
        item.path = RemotePath(parts)
        if !isFolder { (item.rev, item.size) = (Revision("1"), 0) }
        return .changed(item)
    }
}
