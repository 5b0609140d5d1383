/// The services that can be simulated: one line each.
public enum Simulators {
    /// How a service is made, on an empty account or on the sample account.
    public struct Maker: Sendable {
        /// The service's name as on the command line.
        public let name: String
        /// Makes the service.
        public let make: @Sendable (_ isSample: Bool) -> any SimulatedService
    }

    /// All services.
    public static let all: [Maker] = [
        Maker(name: "dropbox") {
            DropboxSimulator(
                account: $0 ? DropboxSimulator.sampleAccount() : DropboxSimulator.emptyAccount()
            )
        },
        Maker(name: "drive") {
            $0 ? GoogleDriveSimulator.sample() : GoogleDriveSimulator.empty()
        },
        Maker(name: "onedrive") { $0 ? OneDriveSimulator.sample() : OneDriveSimulator() },
    ]

    /// Services that are started only when they are named.
    public static let others: [Maker] = [
        Maker(name: "nextcloud") { $0 ? NextcloudSimulator.sample() : NextcloudSimulator() },
        Maker(name: "owncloud") { _ in NextcloudSimulator(isOwnCloud: true) },
        Maker(name: "opencloud") {
            $0 ? InfiniteScaleSimulator.sample() : InfiniteScaleSimulator()
        },
        Maker(name: "webdav") { $0 ? PlainDAVSimulator.sample() : PlainDAVSimulator() },
        Maker(name: "box") { $0 ? BoxSimulator.sample() : BoxSimulator() },
        Maker(name: "s3") { $0 ? S3Simulator.sample() : S3Simulator() },
        Maker(name: "weather") { _ in WeatherSimulator() },
    ]

    /// A running service with tokens that are good for its account.
    public struct Running: Sendable {
        /// The service's name as on the command line.
        public let name: String
        /// The running service.
        public let simulator: Simulator
        /// Tokens as after a sign-in.
        public let tokens: SimulatedTokens.Issued
    }

    /// Starts the services, all of them unless `names` are given, with the sample account unless
    /// `isSample` is false; each is to be stopped by its `simulator`.
    public static func start(
        _ names: [String]? = nil,
        isSample: Bool = true,
        person: SimulatedPerson = .ada
    ) async throws -> [Running] {
        var running: [Running] = []
        for maker in names == nil ? all : all + others
        where names?.contains(maker.name) ?? true {
            let simulator: Simulator
            do {
                let service = maker.make(isSample)
                service.account.person = person
                simulator = try await Simulator.start(service)
            } catch {
                for started in running { await started.simulator.stop() }
                throw error
            }
            running.append(
                Running(
                    name: maker.name,
                    simulator: simulator,
                    tokens: simulator.account.tokens.issue()
                )
            )
        }
        return running
    }
}
