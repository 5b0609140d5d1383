public import OortModel

/// Decides what makes the three trees equal: a pure function from their differences to a plan.
///
/// `docs/sync.md` has the rules as a table. The input holds every item in motion and what it
/// touches: all ancestors in each tree, the occupants of the names that it has or had, and all
/// items that a deleted folder held. What is not in the input is clean.
public struct Planner: Sendable {
    /// What of the service's traits decides.
    public let traits: PlannerTraits

    /// A planner for a service.
    public init(traits: PlannerTraits) { self.traits = traits }

    /// The next plan.
    ///
    /// News come first: while there are any that can be merged, the plan holds local steps only.
    /// Then the identities of items that a program replaced are handed over. Then comes the push.
    public func plan(_ items: [ItemState]) -> Plan {
        let trees = Trees(items, traits: traits)
        var plan = Plan()
        var merge = Merge(trees, allowsDuplicates: traits.allowsDuplicates)
        plan.local = merge.steps()
        guard plan.local.isEmpty else { return plan }
        plan.local = handovers(trees, postponed: merge.postponed)
        guard plan.local.isEmpty else { return plan }
        var push = Push(trees, traits: traits, postponed: merge.postponed)
        plan.remote = push.operations()
        return plan
    }

    /// Whether an item has no difference that could be sent, now or later, and so need not stay in motion.
    ///
    /// A difference in an attribute that the service does not keep does not count.
    public func mayRest(_ item: ItemState) -> Bool {
        guard item.isSettled, item.isPushable, !item.isBusy, !item.isBeingWritten, !item.hasNews,
            let local = item.local, let remote = item.remote, local.place == remote.place
        else { return false }
        guard local.content == nil || local.hasSameContent(as: remote) else { return false }
        return traits.contentAction(item) == nil
    }

    /// The temporary name that breaks a circle of moves; the same after a restart.
    ///
    /// `number` counts an item's detours from 0: the first name may be taken, by another machine or by a
    /// person who saw it. The detour of a link keeps the ending of the link's `name`, by which a service
    /// that keeps links knows it.
    public static func detourName(
        of inode: Inode,
        named name: String? = nil,
        number: Int = 0
    ) -> String {
        let numbers = number == 0 ? "\(inode.rawValue)" : "\(inode.rawValue)-\(number)"
        let isLink = name.flatMap(LinkName.link) != nil
        return ".oort-\(numbers).tmp" + (isLink ? LinkName.ending : "")
    }

    /// Whether this is the name of some item's detour.
    static func isDetour(_ name: String) -> Bool {
        guard
            let numbers = (LinkName.link(name) ?? name).dropping(beginning: ".oort-")?
                .dropping(ending: ".tmp")?
                .parts(between: "-")
        else { return false }
        return (1...2).contains(numbers.count) && numbers.allSatisfy { UInt64($0) != nil }
    }
}

/// A place as the service compares it: only one item can have it, where names are unique in a folder.
struct PlaceKey: Hashable {
    let parent: Inode
    /// The name's key as bytes, since texts of two normal forms are equal to Swift.
    let name: [UInt8]
}

/// The planner's input, indexed.
struct Trees {
    let items: [ItemState]
    private let comparison: NameRules.Comparison
    private let linkMark: String?
    private(set) var index: [Inode: Int]

    init(_ items: [ItemState], traits: PlannerTraits) {
        self.items = items
        comparison = traits.comparison
        linkMark = traits.linkMark
        index = Dictionary(minimumCapacity: items.count)
        for (position, item) in items.enumerated() { index[item.inode] = position }
    }

    /// Whether an item is kept as a link at the service, however it shows here, or will be.
    private func isKeptAsLink(_ item: ItemState) -> Bool {
        guard let linkMark else { return false }
        guard let remote = item.remote else { return item.isLink }
        return remote.content?.revision?.rawValue.begins(with: linkMark) == true
    }

    /// Whether both are kept as links at the service, or neither is: only then may one take over the
    /// other's identity, or adopt it.
    func areOfOneKind(_ one: ItemState, _ other: ItemState) -> Bool {
        isKeptAsLink(one) == isKeptAsLink(other)
    }

    /// The place that an item takes up when it lies at `place`.
    ///
    /// Where links are kept as links, `NAME.rclonelink` takes up `NAME`, as a file of that name does.
    func key(_ place: Place, of item: ItemState) -> PlaceKey {
        let link = isKeptAsLink(item) ? LinkName.link(place.name) : nil
        return PlaceKey(
            parent: place.parent,
            name: Array(comparison.key(link ?? place.name).utf8)
        )
    }

    /// The items of the local tree by place.
    func localPlaces() -> [PlaceKey: Int] {
        var places: [PlaceKey: Int] = [:]
        for (position, item) in items.enumerated() {
            if let local = item.local { places[key(local.place, of: item)] = position }
        }
        return places
    }

    /// The items of the remote tree by place; any of two that share a name.
    func remotePlaces() -> [PlaceKey: Int] {
        var places: [PlaceKey: Int] = [:]
        for (position, item) in items.enumerated() {
            if let remote = item.remote { places[key(remote.place, of: item)] = position }
        }
        return places
    }
}
