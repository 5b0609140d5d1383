public import OortModel
public import OortSimulators

/// A provider and the service behind it: where each conformance test lives.
///
/// The service is a simulator, or a foreign server; what only some can do is a `WorldAbility`.
public protocol ProviderWorld: Sendable {
    /// The provider under test, over its whole stack.
    var provider: any Provider { get }
    /// The id of the account's root, as the provider names it.
    var rootID: ItemID { get }

    /// Changes the account as another client, past the provider.
    ///
    /// `.trash` deletes where the service has no trash. A modified time is kept where the service keeps
    /// any.
    func somebodyElse(_ edit: SimulatorEdit) async throws

    /// All that the service has, without what Oort keeps there for itself, by its path from the root.
    func truth() async throws -> [RemotePath: TrueItem]

    /// The bytes of a file as the service has it; nil where there is none.
    func bytes(at path: RemotePath) async throws -> [UInt8]?

    /// What has passed between the provider and the service so far (`.counts`).
    var traffic: Traffic { get throws }

    /// Places a fault at any request (`.faults`).
    func add(_ fault: Fault, times: Int?) throws

    /// Takes all faults away (`.faults`).
    func clearFaults() throws

    /// Lets a misfortune happen (`.suffers`).
    func befall(_ misfortune: Misfortune) async throws
}

/// What the service has at one place.
public enum TrueItem: Hashable, Sendable {
    /// A file of so many bytes.
    case file(size: Int64)
    /// A folder.
    case folder
    /// Something else: a document of the service's own, a shortcut.
    case other
}

/// What passed between a provider and its service.
public struct Traffic: Sendable {
    /// Requests.
    public var calls: Int
    /// Bytes of contents and messages that came to the service.
    public var bytesIn: Int64
    /// Bytes that left the service.
    public var bytesOut: Int64

    /// Counts of requests and bytes.
    public init(calls: Int, bytesIn: Int64, bytesOut: Int64) {
        self.calls = calls
        self.bytesIn = bytesIn
        self.bytesOut = bytesOut
    }
}

/// What happens to an account at the service.
public enum Misfortune: Hashable, Sendable {
    /// Access tokens expire, which a refresh token renews.
    case expiredAccess
    /// The sign-in is taken back.
    case revokedAccess
    /// The service forgets all cursors of its change feed.
    case lostCursors
    /// The service forgets all open upload sessions.
    case lostSessions
    /// All connections end at once.
    case cutConnections
}

/// What only some worlds can do.
public enum WorldAbility: Hashable, Sendable {
    /// Requests and bytes are counted.
    case counts
    /// Faults can be placed at requests.
    case faults
    /// A misfortune can be let happen.
    case suffers(Misfortune)
    /// The server refuses a name that its protocol takes, or stores it as another.
    case refuses(String, ItemKind)
    /// There is a native document, in the sample at least.
    case documents
    /// The service makes small pictures.
    case thumbnails
    /// The account is Ada Example's, of 2 TB.
    case person
}

/// A world was asked for what it cannot do: its kind says which abilities it has.
public struct NoSuchAbility: Error {
    /// A world without it.
    public init() {}
}

extension ProviderWorld {
    /// The account's root.
    public var root: ItemReference { ItemReference(id: rootID, path: .root) }

    /// How an item is named in a further call.
    public func reference(_ item: Item, in parent: ItemReference? = nil) -> ItemReference {
        ItemReference(
            id: item.id,
            path: item.path ?? (parent ?? root).path.appending(item.fileName)
        )
    }

    /// Places a fault at the next request.
    public func add(_ fault: Fault) throws { try add(fault, times: 1) }
}

/// What few worlds can.
extension ProviderWorld {
    public var traffic: Traffic { get throws { throw NoSuchAbility() } }
    public func add(_ fault: Fault, times: Int?) throws { throw NoSuchAbility() }
    public func clearFaults() throws { throw NoSuchAbility() }
    public func befall(_ misfortune: Misfortune) async throws { throw NoSuchAbility() }
}

/// What an account holds at first.
public enum WorldContent: Sendable, Hashable {
    /// Nothing.
    case empty
    /// `SampleAccount`.
    case sample
}

/// One kind of service as the conformance suite knows it: one line in `conformingKinds`.
public struct ConformingKind: Sendable, CustomStringConvertible {
    /// The kind's name.
    public let description: String
    /// What its worlds can do.
    public let abilities: Set<WorldAbility>
    private let run:
        @Sendable (WorldContent, (any ProviderWorld) async throws -> Void) async throws -> Void

    /// A kind by its name, its abilities, and how a test runs in a world of its own.
    public init(
        _ name: String,
        abilities: Set<WorldAbility>,
        run:
            @escaping @Sendable (
                WorldContent, (any ProviderWorld) async throws -> Void
            ) async throws -> Void
    ) {
        description = name
        self.abilities = abilities
        self.run = run
    }

    /// Runs a test in a world of its own, which ends with it.
    public func withWorld(
        _ content: WorldContent = .empty,
        _ body: (any ProviderWorld) async throws -> Void
    ) async throws {
        try await run(content, body)
    }

    /// Whether its worlds have an ability.
    public func can(_ ability: WorldAbility) -> Bool { abilities.contains(ability) }
}
