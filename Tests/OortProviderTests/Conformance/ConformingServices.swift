import OortBox
import OortDropbox
import OortOneDrive
import OortSimulators
import OortTesting

/// The kinds of services that the conformance suite runs: one line each.
let conformingKinds: [ConformingKind] =
    (servicesWithIDs + clouds).map(\.conforming) + [
        .apache, .sabre, .openSSH, .proFTPD, .seaweedFS,
    ]

/// Services with lasting ids and a change feed.
let servicesWithIDs: [SimulatedKind] = [.dropbox, .googleDrive, .oneDrive, .box]

/// Clouds that speak WebDAV.
let clouds: [SimulatedKind] = [.nextcloud, .ownCloud, .openCloud]

/// The kinds whose worlds have an ability.
func kinds(that ability: WorldAbility) -> [ConformingKind] {
    conformingKinds.filter { $0.can(ability) }
}

extension SimulatedKind {
    private static let allAbilities = usualAbilities.union([.suffers(.lostCursors)])

    static let dropbox = SimulatedKind("dropbox", abilities: allAbilities, rules: .dropbox) {
        content in
        DropboxSimulator(
            account: content == .sample
                ? DropboxSimulator.sampleAccount() : DropboxSimulator.emptyAccount()
        )
    } provide: { client, simulator in
        DropboxProvider(
            client: client,
            endpoints: DropboxEndpoints(
                api: simulator.url(host: "api.dropboxapi.com"),
                content: simulator.url(host: "content.dropboxapi.com"),
                notify: simulator.url(host: "notify.dropboxapi.com"),
                web: simulator.url(host: "www.dropbox.com")
            ),
            simpleUpload: 4 << 20,
            partSize: 4 << 20
        )
    }

    static let oneDrive = SimulatedKind("onedrive", abilities: allAbilities) { content in
        content == .sample
            ? OneDriveSimulator.sample() : OneDriveSimulator(totalBytes: 2_000_000_000_000)
    } provide: { client, simulator in
        OneDriveProvider(
            client: client,
            endpoints: .simulated(by: simulator),
            partSize: 4 * OneDriveProvider.partMultiple
        )
    }

    /// Box does not say what it answers to who comes too late; the provider does not wait for that.
    static let box = SimulatedKind("box", rules: .box) { content in
        content == .sample ? BoxSimulator.sample() : BoxSimulator()
    } provide: { client, simulator in
        BoxProvider(client: client, endpoints: .simulated(by: simulator))
    }
}

extension BoxEndpoints {
    static func simulated(by simulator: Simulator) -> BoxEndpoints {
        BoxEndpoints(
            api: simulator.url(host: "api.box.com"),
            upload: simulator.url(host: "upload.box.com"),
            account: simulator.url(host: "account.box.com")
        )
    }
}
