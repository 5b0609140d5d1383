import Foundation
import OortFTP
import OortModel
import ServerTesting
import Testing

extension FTPTests {
    /// The folder where an account begins is renamed at the server while the account is in use.
    @Suite("the folder of an account")
    struct Root {
        @Test("whoever meets first that it is gone says so", arguments: FTPServer.Kind.usable)
        func renamed(kind server: FTPServer.Kind) async throws {
            try await FTPWorld.with(server) { world in
                try world.write("/folder/file", "text")
                #expect(try await world.client.listing(of: .root).entries.count == 1)
                try FileManager.default.moveItem(atPath: world.root, toPath: world.root + "-x")

                var failures: [ProviderError?] = []
                for stamp in await world.client.stamps(of: [.root]) {
                    failures.append(
                        await Self.failure { () throws(ProviderError) in _ = try stamp.get() }
                    )
                }
                failures.append(
                    await Self.failure { () async throws(ProviderError) in
                        _ = try await world.client.listing(of: .root)
                    }
                )
                failures.append(
                    await Self.failure { () async throws(ProviderError) in
                        _ = try await world.upload([1], to: "/file")
                    }
                )
                #expect(failures.count == 3)
                for failure in failures {
                    #expect(failure?.kind == .offline)
                    #expect(failure?.detail.hasPrefix("the account's folder") == true)
                }

                try FileManager.default.moveItem(atPath: world.root + "-x", toPath: world.root)
                #expect(try await world.client.stamps(of: [.root]).map { try $0.get() }.count == 1)
                #expect(try await world.client.listing(of: .root).entries.count == 1)
            }
        }

        private static func failure(
            _ body: () async throws(ProviderError) -> Void
        ) async -> ProviderError? {
            do throws(ProviderError) {
                try await body()
                return nil
            } catch { return error }
        }
    }
}
