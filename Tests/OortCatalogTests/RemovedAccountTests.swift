import OortCatalog
import OortModel
import Testing

/// An account is signed out that has something that only this machine has.
@Suite("an account that is removed")
struct RemovedAccountTests {
    @Test("what is written after a person gave up the rest keeps all of it")
    func later() async throws {
        let fixture = try TemporaryAccount()
        let (catalog, account) = (fixture.catalog, fixture.account)
        _ = try catalog.create(.file, named: "given up", in: account.root)
        let most = try await catalog.pendingCount(account.id)
        #expect(most == 1)
        let later = try catalog.create(.file, named: "written since", in: account.root)
        #expect(try !catalog.removeAccount(account.id, losingAtMost: most))
        #expect(try catalog.knownNode(later.inode)?.name == "written since")
        #expect(try catalog.removeAccount(account.id, losingAtMost: 2))
        #expect(try catalog.accounts().isEmpty)
    }
}
