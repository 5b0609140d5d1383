import Foundation
import OortModel
import OortProcesses
@testable import OortSignIn
import OortTransport
import SystemPackage
import Synchronization
import Testing

@Suite("token stores")
struct TokenStoreTests {
    private static let credentials = Credentials(
        client: OAuthClient(id: "id", secret: Secret("secret \"ü\" +&=")),
        tokens: Tokens(
            accessToken: Secret(String(repeating: "long", count: 2000)),
            refreshToken: Secret("refresh"),
            expires: Timestamp(seconds: 1_800_000_000),
            grantedScopes: ["a", "b"]
        )
    )

    private func withFolder(_ body: (String) async throws -> Void) async throws {
        let folder = NSTemporaryDirectory() + "oort-store-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await body(folder)
    }

    private func check(_ store: some TokenStore) async throws {
        #expect(try await store.credentials(of: "Work, ü/../x") == nil)
        try await store.forget("Work, ü/../x")
        try await store.keep(Self.credentials, of: "Work, ü/../x")
        #expect(try await store.credentials(of: "Work, ü/../x") == Self.credentials)
        #expect(try await store.credentials(of: "Work") == nil)
        let bare = Credentials(client: nil, tokens: Tokens(accessToken: Secret("a")))
        try await store.keep(bare, of: "Work, ü/../x")
        #expect(try await store.credentials(of: "Work, ü/../x") == bare)
        try await store.forget("Work, ü/../x")
        #expect(try await store.credentials(of: "Work, ü/../x") == nil)
    }

    @Test("files keep, replace and forget")
    func files() async throws {
        try await withFolder { try await check(FileTokenStore(directory: $0)) }
    }

    @Test("a name of many bytes is kept like any other, and apart from one that begins as it does")
    func longNames() async throws {
        try await withFolder { folder in
            let store = FileTokenStore(directory: folder)
            let name = String(repeating: "я", count: 50)
            try await store.keep(Self.credentials, of: name)
            #expect(try await store.credentials(of: name) == Self.credentials)
            #expect(try await store.credentials(of: name + "я") == nil)
            try await store.forget(name)
            #expect(try await store.credentials(of: name) == nil)
        }
    }

    @Test("files are their owner's alone, also when replaced, and no other file stays behind")
    func modes() async throws {
        try await withFolder { folder in
            let store = FileTokenStore(directory: folder)
            for _ in 0..<2 { try await store.keep(Self.credentials, of: "Work") }
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["Work.json"])
            for (path, mode) in [(folder, 0o700), (folder + "/Work.json", 0o600)] {
                let attributes = try FileManager.default.attributesOfItem(atPath: path)
                #expect(attributes[.posixPermissions] as? Int == mode)
            }
        }
    }

    @Test("one lock an account is held by one, keeps no file, and outlives nobody")
    func locks() async throws {
        try await withFolder { folder in
            let store = FileTokenStore(directory: folder)
            let lock = try await store.lock("Work", patience: .zero)
            await #expect(throws: SignInError.self) {
                try await store.lock("Work", patience: .zero)
            }
            let other = try await store.lock("Work2", patience: .zero)
            other.end()
            let waiting = Task { try await store.lock("Work") }
            await Task.yield()
            lock.end()
            try await waiting.value.end()
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
            // A process that died left it.
            try "".write(toFile: folder + "/Work.lock", atomically: false, encoding: .utf8)
            try await store.lock("Work", patience: .zero).end()
            // Who waits is not kept.
            let held = try await store.lock("Work", patience: .zero)
            let cancelled = Task { try await store.lock("Work") }
            cancelled.cancel()
            await #expect(throws: SignInError.transport(.cancelled)) { try await cancelled.value }
            held.end()
        }
    }

    /// Bytes that look at the modes of a folder's files when they are written.
    private struct LookingBytes: Sequence {
        let folder: String
        let modes: (Int) -> Void

        func makeIterator() -> IndexingIterator<[UInt8]> {
            let files = FileManager.default
            for name in (try? files.contentsOfDirectory(atPath: folder)) ?? [] {
                let found = try? files.attributesOfItem(atPath: "\(folder)/\(name)")
                modes(found?[.posixPermissions] as? Int ?? -1)
            }
            return Array("hush".utf8).makeIterator()
        }
    }

    @Test("a private file is its owner's alone before it has a byte, and never goes over another")
    func privateFromTheFirstMoment() async throws {
        try await withFolder { folder in
            try FileManager.default.createDirectory(
                atPath: folder,
                withIntermediateDirectories: true
            )
            var modes: [Int] = []
            let bytes = LookingBytes(folder: folder) { modes.append($0) }
            try PrivateFile.make(folder + "/made", bytes)
            #expect(modes == [0o600])
            #expect(throws: Errno.fileExists) { try PrivateFile.make(folder + "/made", [1]) }
            modes = []
            try PrivateFile.replace(folder + "/made", with: bytes)
            #expect(modes == [0o600, 0o600])
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["made"])
            #expect(FileManager.default.contents(atPath: folder + "/made") == Data("hush".utf8))
        }
    }

    @Test("what a process that died left is forgotten with the account, and only with that")
    func leftOver() async throws {
        try await withFolder { folder in
            let store = FileTokenStore(directory: folder)
            for name in ["Work", "Work2"] { try await store.keep(Self.credentials, of: name) }
            for name in ["Work.json.abc.new", "Work2.json.abc.new"] {
                try "hush".write(toFile: "\(folder)/\(name)", atomically: true, encoding: .utf8)
            }
            try await store.forget("Work")
            let left = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
            #expect(left == ["Work2.json", "Work2.json.abc.new"])
        }
    }

    @Test("a file that is damaged is an error, and not shown")
    func damaged() async throws {
        try await withFolder { folder in
            let store = FileTokenStore(directory: folder)
            try await store.keep(Self.credentials, of: "Work")
            try "hush".write(toFile: folder + "/Work.json", atomically: true, encoding: .utf8)
            await #expect(throws: SignInError.damaged) { try await store.credentials(of: "Work") }
            #expect(!"\(SignInError.damaged)".contains("hush"))
        }
    }

    @Test("a new sign-in goes over a damaged file")
    func damagedBefore() async throws {
        try await withFolder { folder in
            let desktop = FileTokenStore(directory: folder + "/desktop")
            let files = FileTokenStore(directory: folder + "/files")
            let both = AutomaticTokenStore(files: files) { desktop }
            try await files.keep(Self.credentials, of: "Work")
            try "hush".write(toFile: folder + "/files/Work.json", atomically: true, encoding: .utf8)
            try await both.keep(Self.credentials, of: "Work")
            #expect(try await both.credentials(of: "Work") == Self.credentials)
        }
    }

    @Test("credentials stay where they are; new ones go to the desktop's store")
    func automatic() async throws {
        try await withFolder { folder in
            let desktop = FileTokenStore(directory: folder + "/desktop")
            let files = FileTokenStore(directory: folder + "/files")
            let both = AutomaticTokenStore(files: files) { desktop }
            try await check(both)
            try await both.keep(Self.credentials, of: "new")
            #expect(try await files.credentials(of: "new") == nil)
            #expect(try await desktop.credentials(of: "new") == Self.credentials)
            try await files.keep(Self.credentials, of: "old")
            try await both.keep(Self.credentials, of: "old")
            #expect(try await desktop.credentials(of: "old") == nil)
            #expect(await both.place(of: "new") == desktop.place)
            #expect(await both.place(of: "old") == files.place)
        }
    }

    @Test("what lies with a desktop is not absent while there is none, and is found once there is")
    func desktopLater() async throws {
        try await withFolder { folder in
            let desktop = FileTokenStore(directory: folder + "/desktop")
            let files = FileTokenStore(directory: folder + "/files")
            let isThere = Mutex(true)
            func store() -> AutomaticTokenStore {
                AutomaticTokenStore(files: files) { isThere.withLock(\.self) ? desktop : nil }
            }
            let both = store()
            try await both.keep(Self.credentials, of: "Work")
            isThere.withLock { $0 = false }
            let later = store()
            await #expect(throws: SignInError.keyringSilent) {
                try await later.credentials(of: "Work")
            }
            await #expect(throws: SignInError.keyringSilent) { try await later.forget("Work") }
            #expect(try await later.credentials(of: "new") == nil)
            isThere.withLock { $0 = true }
            #expect(try await later.credentials(of: "Work") == Self.credentials)
            try await later.forget("Work")
            #expect(try await later.credentials(of: "Work") == nil)
            // A sign-in without a desktop goes to a file, which counts from then on.
            try await later.keep(Self.credentials, of: "Work")
            isThere.withLock { $0 = false }
            let again = store()
            try await again.keep(Self.credentials, of: "Work")
            #expect(try await again.credentials(of: "Work") == Self.credentials)
            #expect(try await files.credentials(of: "Work") == Self.credentials)
        }
    }

    @Test("without a session bus there is no Secret Service")
    func noBus() async {
        #expect(
            await SecretServiceTokenStore(
                folder: "/",
                takesOver: true,
                environment: ["PATH": "/usr/bin:/bin"]
            ) == nil
        )
    }

    private static let isKeyringInstalled = ["dbus-daemon", "gnome-keyring-daemon", "secret-tool"]
        .allSatisfy { FileManager.default.isExecutableFile(atPath: "/usr/bin/\($0)") }

    @Test(
        "a real GNOME Keyring keeps, replaces and forgets",
        .enabled(
            if: isKeyringInstalled,
            "dbus-daemon, gnome-keyring or secret-tool is not installed"
        ),
        .timeLimit(.minutes(15))
    )
    func secretService() async throws {
        try await withFolder { folder in
            try FileManager.default.createDirectory(
                atPath: folder,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
            var environment = [
                "PATH": "/usr/bin:/bin", "HOME": folder, "XDG_RUNTIME_DIR": folder,
                "XDG_DATA_HOME": folder + "/data", "LANG": "C.UTF-8",
            ]
            // A bus that starts no services: a program that asks for the keyring before it is there would
            // have another one started, which stays locked.
            let configuration = folder + "/bus.conf"
            try """
            <busconfig>
              <type>session</type>
              <listen>unix:path=\(folder)/bus</listen>
              <policy context="default">
                <allow send_destination="*"/>
                <allow receive_sender="*"/>
                <allow own="*"/>
              </policy>
            </busconfig>
            """.write(toFile: configuration, atomically: true, encoding: .utf8)
            let address = try ProgramPipe()
            defer { address.close() }
            var bus = Program(
                "/usr/bin/dbus-daemon",
                ["--config-file=\(configuration)", "--nofork", "--print-address"],
                environment: environment
            )
            bus.output = .descriptor(address.writing)
            let runningBus = try RunningProgram(bus)
            defer { runningBus.send(SIGKILL) }
            environment["DBUS_SESSION_BUS_ADDRESS"] = address.reading.readLine()

            let password = try ProgramPipe()
            defer { try? password.reading.close() }
            var keyring = Program(
                "/usr/bin/gnome-keyring-daemon",
                ["--foreground", "--unlock", "--components=secrets"],
                environment: environment
            )
            keyring.input = .descriptor(password.reading)
            let runningKeyring = try RunningProgram(keyring)
            defer { runningKeyring.send(SIGKILL) }
            try password.writing.writeAll(Array("password".utf8))
            try password.writing.close()
            // It answers once it is unlocked.
            var answering: SecretServiceTokenStore?
            while answering == nil {
                answering = await SecretServiceTokenStore(
                    folder: "/one",
                    takesOver: true,
                    environment: environment
                )
            }
            let store = try #require(answering)
            try await check(store)
            let other = try #require(
                await SecretServiceTokenStore(
                    folder: "/two",
                    takesOver: false,
                    environment: environment
                )
            )
            try await checkFolders(store, other, environment)
            try await checkLengths(store, in: folder)
            try await checkLocked(store, environment)
        }
    }

    /// What is too long for `secret-tool` is refused, and goes to a file.
    private func checkLengths(_ store: SecretServiceTokenStore, in folder: String) async throws {
        func credentials(_ length: Int) -> Credentials {
            var credentials = Credentials(client: nil, tokens: Tokens(accessToken: Secret("")))
            let text = String(repeating: "a", count: length - credentials.json.count)
            credentials.tokens.accessToken = Secret(text)
            return credentials
        }
        try await store.keep(credentials(8191), of: "long")
        await #expect(throws: SignInError.self) {
            try await store.keep(credentials(8192), of: "long")
        }
        #expect(try await store.credentials(of: "long") == credentials(8191))
        let files = FileTokenStore(directory: folder + "/files")
        let both = AutomaticTokenStore(files: files) { store }
        for length in [8192, 9000, 100] {
            try await both.keep(credentials(length), of: "long")
            #expect(try await both.credentials(of: "long") == credentials(length))
        }
        try await both.forget("long")
        #expect(try await store.credentials(of: "long") == nil)
    }

    /// What a locked keyring holds is neither absent nor forgotten, though nobody can be asked for the
    /// password here.
    private func checkLocked(
        _ store: SecretServiceTokenStore,
        _ environment: [String: String]
    ) async throws {
        let old = ["application", "oort", "account", "old"]
        let stored = await Program(
            "/usr/bin/secret-tool",
            ["store", "--label=old"] + old,
            environment: environment
        ).outcome(sending: Self.credentials.json, timeLimit: .seconds(60))
        #expect(stored?.status == 0)
        // Some versions end with a crash, once all is locked.
        _ = await Program("/usr/bin/secret-tool", ["lock"], environment: environment)
            .outcome(timeLimit: .seconds(60))
        for name in ["mine", "old"] {
            for forgets in [false, true] {
                await #expect {
                    if forgets {
                        try await store.forget(name)
                    } else {
                        _ = try await store.credentials(of: name)
                    }
                } throws: { error in
                    guard case SignInError.store(let text)? = error as? SignInError else {
                        return false
                    }
                    return text.contains("locked") && !text.contains("refresh")
                }
            }
        }
        #expect(try await store.credentials(of: "nobody") == nil)
        try await store.forget("nobody")
    }

    /// What belongs to one folder of state is another's neither to read nor to forget; what earlier
    /// versions kept becomes that folder's which takes it over.
    private func checkFolders(
        _ store: SecretServiceTokenStore,
        _ other: SecretServiceTokenStore,
        _ environment: [String: String]
    ) async throws {
        try await store.keep(Self.credentials, of: "mine")
        #expect(try await other.credentials(of: "mine") == nil)
        try await other.forget("mine")
        #expect(try await store.credentials(of: "mine") == Self.credentials)
        let old = ["application", "oort", "account", "old"]
        func tool(_ words: [String], _ input: [UInt8] = []) async -> ProgramOutcome? {
            await Program("/usr/bin/secret-tool", words + old, environment: environment)
                .outcome(sending: input, timeLimit: .seconds(60))
        }
        let stored = await tool(["store", "--label=old"], Self.credentials.json)
        #expect(stored?.status == 0)
        #expect(try await other.credentials(of: "old") == nil)
        try await other.forget("old")
        for _ in 0..<2 { #expect(try await store.credentials(of: "old") == Self.credentials) }
        let left = await tool(["lookup"])
        #expect(left?.status == 1, "they are moved")
        try await store.forget("old")
        #expect(try await store.credentials(of: "old") == nil)
    }
}
