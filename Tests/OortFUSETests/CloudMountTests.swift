import Foundation
import Logging
import MountTesting
import OortCatalog
import OortContentStore
import OortFUSE
import OortFileSystem
import OortModel
import Testing

@Suite("A mounted catalog", .enabled(if: canMount, "/dev/fuse cannot be opened here"))
struct CloudMountTests {
    @Test("programs work in an account's folder, and a remote item appears when it was heard of")
    func programs() async throws {
        let state = try TemporaryFolder()
        let folder = try TemporaryFolder()
        defer {
            folder.remove()
            state.remove()
        }
        let log = Logger(label: "test")
        let catalog = try Catalog(
            path: state.path + "/catalog.sqlite",
            checks: .afterEach,
            logger: log
        )
        let rules = NameRules(comparison: .exact, allowsDuplicates: false) { _, _, _ in nil }
        let account = try catalog.registerAccount(name: "cloud", service: "test", names: rules)
        let rootID = ItemID("root")
        try catalog.setIdentity(
            AccountIdentity(id: "me", displayName: "Me", email: nil, rootID: rootID),
            of: account.id
        )
        try await catalog.beginEnumeration(of: account.id)
        var whole = Observations(changes: [])
        whole.endsEnumeration = true
        whole.cursor = Cursor("1")
        _ = try await catalog.apply(whole, to: account.id)

        let store = try ContentStore(
            cacheFolder: state.path + "/cache",
            stateFolder: state.path + "/state",
            catalog: catalog,
            logger: log
        )
        let files = CloudFileSystem(catalog: catalog, store: store, logger: log)
        var settings = FileSystemMount.Settings()
        settings.unmountsAtDeath = false
        let mount = try FileSystemMount(files, at: folder.path, settings: settings, log: log)
        let notifier = mount.notifier
        catalog.setListeners(CatalogListeners(news: { notifier.hear($0) }))

        let outcome = try await ChildProcess.run(
            """
            set -e; cd "$1/cloud"
            mkdir -p a/b; cp /bin/sh a/b/sh; cmp /bin/sh a/b/sh
            echo one >a/one; echo two >>a/one; test "$(cat a/one)" = "$(printf 'one\\ntwo')"
            cp a/one a/copy; cmp a/one a/copy
            ln -s one a/link; test "$(cat a/link)" = "$(cat a/one)"
            mv a/one a/b/; test "$(ls a/b)" = "$(printf 'one\\nsh')"
            truncate -s 5 a/copy; test "$(stat -c %s a/copy)" = 5
            chmod 600 a/copy; test "$(stat -c %a a/copy)" = 600
            ! rmdir a 2>/dev/null; ! ln a/copy a/hard 2>/dev/null
            test -z "$(ls missing 2>/dev/null)"; df . >/dev/null
            """,
            mount.path
        )
        #expect(outcome.status == 0, "\(outcome.output)")

        var item = Item(
            id: ItemID("remote"),
            kind: .folder,
            fileName: "remote",
            parentID: rootID
        )
        item.serverModifiedTime = Timestamp(seconds: 1)
        _ = try await catalog.apply(Observations(changes: [.changed(item)]), to: account.id)
        await notifier.finishTelling()
        let listing = try await ChildProcess.run("ls \"$1/cloud\"", mount.path)
        #expect(listing.output == "a\nremote\n")
        try await mount.unmount(within: .seconds(1))
        try catalog.close()
    }
}
