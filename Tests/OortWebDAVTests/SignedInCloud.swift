import Foundation
import OortModel
import OortSimulators
import OortTransport
import OortWebDAV
import ServerTesting
import Synchronization

/// A simulated server of the clouds' family.
protocol SimulatedCloud: SimulatedService {
    static var host: String { get }
    static var loginName: String { get }
}

extension NextcloudSimulator: SimulatedCloud {}

extension InfiniteScaleSimulator: SimulatedCloud {
    static var loginName: String { user }
}

/// A simulated Nextcloud, or ownCloud 10, with a person signed in.
typealias Cloud = SignedInCloud<NextcloudSimulator>

/// A simulated OpenCloud with a person signed in.
typealias OpenCloud = SignedInCloud<InfiniteScaleSimulator>

/// A simulated cloud with a person signed in.
struct SignedInCloud<Service: SimulatedCloud>: Sendable {
    let service: Service
    let simulator: Simulator
    let http: any HTTPClient
    let account: WebDAVDiscovery.Account

    /// What a person would paste.
    static func url(_ simulator: Simulator) -> String {
        simulator.url(host: Service.host)
    }

    static func with(
        _ service: Service,
        _ body: (Self) async throws -> Void
    ) async throws {
        let simulator = try await Simulator.start(service)
        do {
            let http = try DavServer.http(
                user: Service.loginName,
                password: service.account.tokens.issue().access
            )
            var server = try await WebDAVDiscovery.server(at: url(simulator), http: http)
            server.address.user = Service.loginName
            let account = try await WebDAVDiscovery.account(at: server, http: http)
            simulator.clearCalls()
            try await body(
                Self(service: service, simulator: simulator, http: http, account: account)
            )
        } catch {
            await simulator.stop()
            throw error
        }
        await simulator.stop()
    }

    func client(
        partSize: Int64 = WebDAVClient.partSize,
        secondLook: Duration = .seconds(60),
        folderYouth: Duration = .zero
    ) -> WebDAVClient {
        WebDAVClient(
            http: http,
            address: account.address,
            dialect: account.dialect,
            abilities: account.abilities,
            partSize: partSize,
            secondLook: secondLook,
            folderYouth: folderYouth,
            clock: HastyClock()
        )
    }

    func write(_ text: String, to path: [String], time: Timestamp? = nil) {
        SimulatorEdit.write(path: path, SimulatedContent(text), modifiedTime: time)
            .apply(to: service)
    }

    func item(_ path: String) -> SimulatedItem? {
        service.account.withTree { $0.item(at: RemotePath(text: path).parts) }
    }

    func text(_ path: String) -> String? {
        item(path)?.head.map { String(decoding: $0.content.bytes, as: UTF8.self) }
    }

    var calls: Int { simulator.calls.count }
}

extension SignedInCloud where Service == NextcloudSimulator {
    static func with(
        totalBytes: Int64? = nil,
        isOwnCloud: Bool = false,
        _ body: (Self) async throws -> Void
    ) async throws {
        try await with(NextcloudSimulator(totalBytes: totalBytes, isOwnCloud: isOwnCloud), body)
    }
}

extension SignedInCloud where Service == InfiniteScaleSimulator {
    static func with(
        totalBytes: Int64? = nil,
        _ body: (Self) async throws -> Void
    ) async throws {
        try await with(InfiniteScaleSimulator(totalBytes: totalBytes), body)
    }
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

/// Keeps the last session.
final class Remembering: UploadObserver {
    private let last = Mutex<UploadSession?>(nil)

    var session: UploadSession? { last.withLock { $0 } }
    func sessionChanged(_ session: UploadSession?) async { last.withLock { $0 = session } }
    func sent(_ bytes: Int64) {}
}
