import Foundation
import Logging
import MountTesting
import OortModel
import OortProcesses
public import OortS3
import OortSignIn
public import OortTransport
import SystemPackage

/// The stores of S3 that the tests speak to: foreign programs, on loopback.
public enum Store: String, CaseIterable, Sendable, CustomStringConvertible {
    /// Checks signatures, clocks and every condition.
    case seaweedFS
    /// Keeps keys as they are; has versions.
    case ministack
    /// Has storage classes and versions; checks no signatures.
    case moto
    /// MinIO's front end: strict signatures, no conditions.
    case juiceFS
    /// Checks signatures, ignores every condition.
    case rclone

    public var description: String { rawValue }

    /// The keys that each store knows.
    public static let keys = S3Keys(
        accessKeyID: "oortexample",
        secretAccessKey: .init("a/secret+of=the-tests")
    )
    /// The bucket that each store has.
    public static let bucket = "oort-test"

    /// What the discovery finds out, as measured.
    public var abilities: S3Abilities {
        var abilities = S3Abilities()
        switch self {
        case .seaweedFS: abilities.keepsBackslashes = false
        case .ministack: abilities.refusesTakenCopies = false
        case .moto:
            abilities.refusesTakenCopies = false
            abilities.refusesStaleCopies = false
        case .juiceFS, .rclone:
            abilities.refusesTakenKeys = false
            abilities.refusesStaleUploads = false
            abilities.refusesStaleDeletions = false
            abilities.refusesTakenCopies = false
            if self == .rclone {
                abilities.refusesStaleCopies = false
                abilities.listsMarkers = false
            }
        }
        return abilities
    }

    /// Whether a wrong signature is refused.
    public var checksSignatures: Bool { self != .moto && self != .ministack }

    /// The program and its arguments; what it needs is made in `folder`.
    fileprivate func command(
        in folder: String,
        ports: [Int]
    ) throws -> (arguments: [String], environment: [String: String]) {
        let (id, secret) = (Self.keys.accessKeyID, "a/secret+of=the-tests")
        let port = ports[0]
        switch self {
        case .moto: return (["moto_server", "-H", "127.0.0.1", "-p", "\(port)"], [:])
        case .ministack:
            return (
                ["ministack"],
                ["BIND_HOST": "127.0.0.1", "GATEWAY_PORT": "\(port)", "SERVICES": "s3"]
            )
        case .rclone:
            try FileManager.default.createDirectory(
                atPath: "\(folder)/data/\(Self.bucket)",
                withIntermediateDirectories: true
            )
            return (
                [
                    "rclone", "serve", "s3", "--addr", "127.0.0.1:\(port)", "--auth-key",
                    "\(id),\(secret)", "--vfs-cache-mode", "full", "--cache-dir",
                    "\(folder)/cache", "--config", "\(folder)/none", "\(folder)/data",
                ], [:]
            )
        case .seaweedFS:
            try """
            {"identities": [{"name": "test", "actions": ["Admin", "Read", "Write", "List", "Tagging"],
              "credentials": [{"accessKey": "\(id)", "secretKey": "\(secret)"}]}]}
            """.write(toFile: "\(folder)/s3.json", atomically: true, encoding: .utf8)
            return (
                [
                    "weed", "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-dir=\(folder)",
                    "-master.port=\(ports[1])", "-volume.port=\(ports[2])",
                    "-filer.port=\(ports[3])", "-s3", "-s3.port=\(port)",
                    "-s3.config=\(folder)/s3.json", "-master.telemetry=false", "-volume.max=200",
                    // Two stores would want the same ports for these.
                    "-s3.port.iceberg=0", "-s3.port.lance=0", "-master.volumeSizeLimitMB=64",
                ], [:]
            )
        case .juiceFS:
            return (
                [
                    "sh", "-c",
                    "juicefs format --storage file --bucket \"$0/blocks/\" "
                        + "\"sqlite3://$0/meta.db\" test && exec juicefs gateway --multi-buckets "
                        + "--keep-etag --object-meta --no-usage-report --cache-dir \"$0/cache\" "
                        + "--log \"$0/gateway.log\" \"sqlite3://$0/meta.db\" 127.0.0.1:\(port)",
                    folder,
                ],
                ["MINIO_ROOT_USER": id, "MINIO_ROOT_PASSWORD": secret]
            )
        }
    }
}

/// A store that runs, with its bucket.
public struct RunningStore: Sendable {
    /// Which store it is.
    public let store: Store
    /// Its address.
    public let endpoint: String
    /// What a sign-in found out.
    public let finding: S3Discovery.Finding
    /// The transport that all its clients may share.
    public let wire: CurlClient
}

/// Starts each store once, for all tests; they end with the tests' process.
public actor Stores {
    /// The stores of this process.
    public static let shared = Stores()

    private var starting: [Store: Task<RunningStore, any Error>] = [:]
    private var inputs: [FileDescriptor] = []
    private var ports: [HeldPort] = []

    /// The running store of a kind.
    public func running(_ store: Store) async throws -> RunningStore {
        if let task = starting[store] { return try await task.value }
        let task = Task { try await self.start(store) }
        starting[store] = task
        return try await task.value
    }

    /// The folder of the stores' programs.
    public static let programs = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: ".build/server-venv/bin").path()

    private func start(_ store: Store) async throws -> RunningStore {
        let folder = NSTemporaryDirectory() + "oort-s3-\(store.rawValue)-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        var numbers: [Int] = []
        for _ in 0..<4 {
            // SeaweedFS takes the one 10,000 above, too.
            let (port, above) = try HeldPort.pair(apart: 10_000)
            ports += [port, above]
            numbers.append(Int(port.number))
        }
        let (arguments, environment) = try store.command(in: folder, ports: numbers)
        // SeaweedFS leaves these outside of its folder.
        let sockets = numbers.flatMap { [$0, $0 + 10_000] }
            .map { " /tmp/seaweedfs-*-\($0).sock" }.joined()
        let script =
            "\"$@\" >\"$0/log\" 2>&1 </dev/null & cat >/dev/null; rm -rf \"$0\"\(sockets); kill -9 0"
        let own = [
            "PATH": "\(Self.programs):/usr/bin:/bin", "HOME": folder, "NO_PROXY": "127.0.0.1",
            // SeaweedFS keeps logs there.
            "TMPDIR": folder,
        ]
        var program = Program("/bin/sh", ["-c", script, folder] + arguments)
        program.environment.merge(environment) { $1 }
        program.environment.merge(own) { $1 }
        program.folder = folder
        inputs.append(try program.startWhileOpen())
        let endpoint = "http://127.0.0.1:\(numbers[0])"
        let wire = try CurlClient()
        try await makeBucket(Store.bucket, at: endpoint, wire, folder: folder)
        let finding = try await S3Discovery(
            wire: wire,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        .find(S3Wish(Store.bucket, endpoint: endpoint), keys: Store.keys)
        return RunningStore(store: store, endpoint: endpoint, finding: finding, wire: wire)
    }

    /// Makes the bucket, as soon as the store answers.
    private func makeBucket(
        _ bucket: String,
        at endpoint: String,
        _ wire: CurlClient,
        folder: String
    ) async throws {
        let signer = S3Signer(region: "us-east-1")
        var last = "no answer"
        for _ in 0..<600 {
            do {
                let request = HTTPRequest(method: "PUT", url: "\(endpoint)/\(bucket)")
                let signed = try signer.sign(request, with: Store.keys.secret.revealed())
                let answer = try await wire.send(signed)
                if answer.head.status == 200 || answer.head.status == 409 { return }
                last = "\(answer.head.status) " + String(decoding: answer.body, as: UTF8.self)
            } catch {
                last = "\(error)"
            }
            try await Task.sleep(for: .milliseconds(200))
        }
        let log = (try? String(contentsOfFile: "\(folder)/log", encoding: .utf8)) ?? "no log"
        throw StoreFailure(
            description: "\(endpoint) makes no bucket: \(last)\n\(log.suffix(3000))\n"
                + "The programs are installed by scripts/test into \(Self.programs)."
        )
    }
}

/// What a store did not do.
public struct StoreFailure: Error, CustomStringConvertible {
    /// In words.
    public let description: String

    /// A failure in words.
    public init(description: String) { self.description = description }
}
