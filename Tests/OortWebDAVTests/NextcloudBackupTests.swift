import Foundation
import OortModel
import OortSimulators
import OortWebDAV
import Testing

@Suite("a Nextcloud that was restored from a backup", .timeLimit(.minutes(5)))
struct NextcloudBackupTests {
    @Test("nothing of a server that was restored from a backup is news before a new sign-in")
    func restoredBackup() async throws {
        try await Cloud.with { cloud in
            #expect(cloud.account.abilities.cloud?.fingerprint?.isEmpty == true)
            let kept = try JSONEncoder().encode(cloud.account)
            cloud.write("kept", to: ["file"])
            let client = cloud.client()
            #expect(try await client.listing(of: .root).entries.count == 1)
            cloud.service.habits.fingerprint = "f1"
            for client in [client, cloud.client()] {
                let error = await #expect(throws: ProviderError.self) {
                    try await client.listing(of: .root)
                }
                #expect(error?.kind == .signedOut)
                #expect(error?.detail.contains("backup") == true)
                let stamp = try #require(await client.stamps(of: [.root]).first)
                #expect(throws: ProviderError.self) { try stamp.get() }
            }
            // A sign-in takes over what there is.
            let server = try await WebDAVDiscovery.server(
                at: Cloud.url(cloud.simulator),
                http: cloud.http
            )
            let account = try await WebDAVDiscovery.account(at: server, http: cloud.http)
            #expect(account.abilities.cloud?.fingerprint == "f1")
            let other = WebDAVClient(
                http: cloud.http,
                address: account.address,
                dialect: account.dialect,
                abilities: account.abilities
            )
            #expect(try await other.listing(of: .root).entries.count == 1)
            // A server that says nothing of it at a time says nothing new.
            cloud.service.habits.fingerprint = ""
            #expect(try await other.listing(of: .root).entries.count == 1)
            let again = try JSONDecoder().decode(WebDAVDiscovery.Account.self, from: kept)
            #expect(again == cloud.account)
        }
    }

    @Test("an account that begins in a folder, or was signed in earlier, hears of a backup, too")
    func restoredBackupElsewhere() async throws {
        try await Cloud.with { cloud in
            cloud.write("text", to: ["folder", "file"])
            var account = cloud.account
            account.address.folder = ["folder"]
            // As versions before kept it.
            account.abilities.cloud?.fingerprint = nil
            let client = WebDAVClient(
                http: cloud.http,
                address: account.address,
                dialect: account.dialect,
                abilities: account.abilities
            )
            cloud.service.habits.fingerprint = "f1"
            let listing = try await client.listing(of: .root)
            #expect(listing.entries.map(\.name) == ["file"])
            cloud.service.habits.fingerprint = "f2"
            #expect(await failure { _ = try await client.listing(of: .root) } == .signedOut)
        }
    }
}
