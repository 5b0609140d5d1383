import Foundation
import OortProcesses

/// Keeps credentials in the desktop's Secret Service (GNOME Keyring, KWallet, KeePassXC), through
/// libsecret's `secret-tool`: the secret goes by pipes and is never in a process list.
public struct SecretServiceTokenStore: TokenStore {
    private let tool: String
    private let environment: [String: String]
    private let folder: String
    private let takesOver: Bool

    /// The most bytes that `secret-tool` stores: it cuts off what is more than 8191 or says that it failed, and
    /// ends with 0 all the same (libsecret, tool/secret-tool.c).
    private static let longest = 8191

    /// Whether the credentials are short enough for `secret-tool`.
    static func takes(_ credentials: Credentials) -> Bool { credentials.json.count <= longest }

    /// The credentials that belong to the folder of state `folder`, in the Secret Service of the session that
    /// `environment` (nil: this process's) describes; nil where `secret-tool` is not installed, there is no
    /// session bus, or nothing answers on it as Secret Service.
    ///
    /// `takesOver` says whether those are this folder's, too, that earlier versions kept under the
    /// account's name alone; they are moved when they are asked for.
    public init?(
        folder: String,
        takesOver: Bool,
        environment: [String: String]? = nil
    ) async {
        let environment = environment ?? ProcessInfo.processInfo.environment
        let hasBus =
            environment["DBUS_SESSION_BUS_ADDRESS"]?.isEmpty == false
            || environment["XDG_RUNTIME_DIR"].map {
                FileManager.default.fileExists(atPath: "\($0)/bus")
            } ?? false
        guard hasBus, let tool = Program.find("secret-tool", environment) else { return nil }
        self.tool = tool
        self.environment = environment
        self.folder = folder
        self.takesOver = takesOver
        // Finding nothing is 1 without a word; a missing service says so.
        let probe = await run(["lookup", "application", "oort-probe"])
        guard let probe, probe.status == 1, probe.errors.isEmpty else { return nil }
    }

    public var place: String { "the Secret Service" }

    public func lock(
        _ account: String,
        patience: Duration
    ) async throws(SignInError) -> CredentialsLock {
        try await FileTokenStore(directory: folder).lock(account, patience: patience)
    }

    public func credentials(of account: String) async throws(SignInError) -> Credentials? {
        if let found = try await credentials(by: attributes(of: account)) { return found }
        guard takesOver, let old = try await credentials(by: oldAttributes(of: account)) else {
            return nil
        }
        try await keep(old, of: account)
        return old
    }

    private func credentials(by attributes: [String]) async throws(SignInError) -> Credentials? {
        let result = try await answer(["lookup"] + attributes)
        if result.status == 0 { return try Credentials(json: result.output) }
        try await checkAbsence(of: attributes, after: result)
        return nil
    }

    public func keep(
        _ credentials: Credentials,
        of account: String
    ) async throws(SignInError) {
        guard Self.takes(credentials) else {
            throw .store("the Secret Service: tokens that long cannot be passed to it")
        }
        let attributes = attributes(of: account)
        let arguments = ["store", "--label=Oort: \(account)"] + attributes
        let result = try await answer(arguments, input: credentials.json)
        guard result.status == 0 else { throw failure(result) }
        // It ends with 0 after some failures, too, of which it has said something.
        if !result.errors.isEmpty {
            let kept = try? await self.credentials(by: attributes)
            guard kept == credentials else { throw failure(result) }
        }
        if takesOver { try await clear(oldAttributes(of: account)) }
    }

    public func forget(_ account: String) async throws(SignInError) {
        try await clear(attributes(of: account))
        if takesOver { try await clear(oldAttributes(of: account)) }
    }

    private func clear(_ attributes: [String]) async throws(SignInError) {
        let result = try await answer(["clear"] + attributes)
        if result.status != 0 { try await checkAbsence(of: attributes, after: result) }
    }

    /// Checks that the keyring holds nothing with these attributes, which `lookup` or `clear` did not find.
    ///
    /// What is locked they do not find either, once the question for the password was dismissed.
    private func checkAbsence(
        of attributes: [String],
        after result: ProgramOutcome
    ) async throws(SignInError) {
        // Finds what is locked, too, and asks for no password. It prints secrets: nobody is shown a word of it.
        let search = try await answer(["search"] + attributes)
        guard search.output.isEmpty else {
            throw .store(
                "the keyring is locked: unlock it, by logging in to the desktop or in its program for "
                    + "passwords"
            )
        }
        guard result.errors.isEmpty else { throw failure(result) }
        guard search.status == 0 || search.errors.isEmpty else { throw failure(search) }
    }

    /// One keyring serves all folders of state, each of which may have an account of that name.
    private func attributes(of account: String) -> [String] {
        ["application", "oort", "folder", folder, "name", account]
    }

    /// Those of earlier versions; no present ones have them all.
    private func oldAttributes(of account: String) -> [String] {
        ["application", "oort", "account", account]
    }

    private func answer(
        _ arguments: [String],
        input: [UInt8] = []
    ) async throws(SignInError) -> ProgramOutcome {
        guard let result = await run(arguments, input: input) else {
            throw .store("the Secret Service does not answer; is the keyring locked?")
        }
        return result
    }

    private func run(_ arguments: [String], input: [UInt8] = []) async -> ProgramOutcome? {
        await Program(tool, arguments, environment: environment)
            .outcome(sending: input, timeLimit: .seconds(60))
    }

    private func failure(_ result: ProgramOutcome) -> SignInError {
        .store("the Secret Service: \(result.errors.prefix(200))")
    }
}
