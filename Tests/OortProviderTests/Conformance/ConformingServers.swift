import Foundation
import OortFTP
import OortModel
import OortPlaces
import OortSimulators
import OortTesting
import OortTransport
import ServerTesting
import Synchronization

/// Foreign servers, to whose disks another client writes.
extension ConformingKind {
    /// Plain WebDAV by Apache's mod_dav.
    static let apache = plainWebDAV(.apache)

    /// Plain WebDAV by sabre/dav, which has no tags, copies what is moved and takes some names for Latin-1.
    static let sabre = plainWebDAV(
        .sabre,
        [.refuses("İı ß ﬁ", .file), .refuses("İı ß ﬁ", .folder)]
    )

    private static func plainWebDAV(
        _ kind: DavServer.Kind,
        _ more: Set<WorldAbility> = []
    ) -> ConformingKind {
        ConformingKind(
            kind.rawValue,
            abilities: more.union([.counts, .faults, .suffers(.revokedAccess)])
        ) { content, body in
            try await DavServer.with(kind) { server in
                let folder = ServedFolder(server.files, isForAll: true)
                if content == .sample { try folder.fill(from: .sampleOfFiles()) }
                let wire = Mutex<FaultyClient?>(nil)
                let client = try await server.client(
                    policy: .hasty(patience: .seconds(600)),
                    secondLook: .zero
                ) {
                    $0
                } onTheWire: { next in
                    let network = FaultyClient(next)
                    wire.withLock { $0 = network }
                    return network
                }
                try await withPlaces(of: client) { provider in
                    try await body(
                        ServedWorld(
                            provider: provider,
                            folder: folder,
                            network: wire.withLock(\.self),
                            misfortunes: [.revokedAccess: { try server.refuseAll() }]
                        )
                    )
                }
            }
        }
    }

    /// SFTP by OpenSSH.
    static let openSSH = ConformingKind(
        "openssh",
        abilities: [
            .suffers(.revokedAccess), .suffers(.lostSessions), .suffers(.cutConnections),
        ]
    ) { content, body in
        try await SSHServer.with { server, client in
            let folder = ServedFolder(server.root)
            if content == .sample { try folder.fill(from: .sampleOfFiles()) }
            try await withPlaces(of: client) { provider in
                try await body(
                    ServedWorld(
                        provider: provider,
                        folder: folder,
                        network: nil,
                        misfortunes: [
                            .revokedAccess: { try server.refuseAll() },
                            .cutConnections: { server.cutSessions() },
                            .lostSessions: {
                                for name in server.names() where name.hasSuffix(".part") {
                                    try FileManager.default.removeItem(
                                        atPath: server.root + "/" + name
                                    )
                                }
                            },
                        ]
                    )
                )
            }
        }
    }

    /// FTP by ProFTPD, encrypted.
    static let proFTPD = ConformingKind("proftpd", abilities: [.refuses("*", .folder)]) {
        content,
        body in
        let server = try await FTPServers.shared.running(.proftpd)
        let name = "world-\(UUID().uuidString.prefix(8))"
        let root = "\(server.folder)/root/\(name)"
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: root) }
        let folder = ServedFolder(root)
        if content == .sample { try folder.fill(from: .sampleOfFiles()) }
        let client = FTPClient(
            server.account(name),
            secret: FixedToken(FTPServer.password),
            settings: server.settings
        )
        let outcome: Result<Void, any Error>
        do {
            try await withPlaces(of: client) { provider in
                try await body(
                    ServedWorld(
                        provider: provider,
                        folder: folder,
                        network: nil,
                        misfortunes: [:]
                    )
                )
            }
            outcome = .success(())
        } catch { outcome = .failure(error) }
        await client.close()
        try outcome.get()
    }
}

/// A provider and a real server, whose disk is this machine's.
struct ServedWorld: ProviderWorld {
    let provider: any Provider
    let folder: ServedFolder
    /// What lies between the provider's stack and the server, where that is HTTP.
    let network: FaultyClient?
    let misfortunes: [Misfortune: @Sendable () throws -> Void]

    var rootID: ItemID { PlaceProvider.rootID }

    func somebodyElse(_ edit: SimulatorEdit) throws { try folder.apply(edit) }
    func truth() throws -> [RemotePath: TrueItem] { try folder.truth() }
    func bytes(at path: RemotePath) -> [UInt8]? { folder.bytes(at: path) }

    var traffic: Traffic {
        get throws { try faulty().traffic }
    }
    func add(_ fault: Fault, times: Int?) throws { try faulty().add(fault, times: times) }
    func clearFaults() throws { try faulty().clearFaults() }

    private func faulty() throws -> FaultyClient {
        guard let network else { throw NoSuchAbility() }
        return network
    }

    func befall(_ misfortune: Misfortune) throws {
        guard let act = misfortunes[misfortune] else { throw NoSuchAbility() }
        try act()
    }
}
