import Logging
import MountTesting
import OortModel
import OortPlaces
import OortSimulators
import OortTesting
import OortTransport
import OortWebDAV

extension SimulatedKind {
    static let nextcloud = cloud("nextcloud", user: NextcloudSimulator.loginName) {
        NextcloudSimulator(totalBytes: 2_000_000_000_000)
    } at: {
        $0.url(host: NextcloudSimulator.host)
    }

    static let ownCloud = cloud("owncloud", user: NextcloudSimulator.loginName) {
        NextcloudSimulator(totalBytes: 2_000_000_000_000, isOwnCloud: true)
    } at: {
        $0.url(host: NextcloudSimulator.host)
    }

    static let openCloud = cloud("opencloud", user: InfiniteScaleSimulator.user) {
        InfiniteScaleSimulator(totalBytes: 2_000_000_000_000)
    } at: {
        $0.url(host: InfiniteScaleSimulator.host)
    }

    /// A cloud of the family, signed in to as `oort login` does; app passwords do not expire.
    private static func cloud<Service: SimulatedService>(
        _ name: String,
        user: String,
        simulate: @escaping @Sendable () -> Service,
        at url: @escaping @Sendable (Simulator) -> String
    ) -> SimulatedKind {
        SimulatedKind(
            name,
            abilities: usualAbilities.subtracting([.suffers(.expiredAccess)]),
            rules: .webDAV,
            signer: BasicSigner(user: user),
            simulate: { content in
                let service = simulate()
                if content == .sample {
                    service.account.withTree { SampleAccount.ofFiles.fill(&$0) }
                }
                return service
            }
        ) { http, simulator, body in
            var server = try await WebDAVDiscovery.server(at: url(simulator), http: http)
            server.address.user = user
            let account = try await WebDAVDiscovery.account(at: server, http: http)
            try await withPlaces(
                of: WebDAVClient(
                    http: http,
                    address: account.address,
                    dialect: account.dialect,
                    abilities: account.abilities,
                    partSize: 1 << 20,
                    secondLook: .zero,
                    folderYouth: .zero,
                    clock: HastyClock()
                ),
                body
            )
        }
    }
}

/// Runs a test with a provider of places, whose map ends with it.
func withPlaces(
    of client: any PlaceClient,
    _ body: (PlaceProvider) async throws -> Void
) async throws {
    let folder = try TemporaryFolder()
    defer { folder.remove() }
    let map = try PlaceMap(path: folder.path + "/places.sqlite")
    defer { map.close() }
    try await body(
        PlaceProvider(
            client: client,
            map: map,
            logger: Logger(label: "places") { _ in SwiftLogNoOpLogHandler() }
        )
    )
}

/// A clock whose sleeps last a hundredth.
struct HastyClock: Clock {
    typealias Instant = ContinuousClock.Instant
    var now: Instant { ContinuousClock.now }
    var minimumResolution: Duration { .nanoseconds(1) }
    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        try await Task.sleep(for: (deadline - now) / 100)
    }
}
