import Foundation
import Synchronization

/// Keeps new credentials in the Secret Service where one answers and takes them, else in files; finds
/// them in either, and leaves them where they are.
///
/// A mount may begin before the session whose Secret Service has its tokens: that is looked for until it
/// answers. A mark beside the files says of which accounts the credentials lie there, so that nobody takes them
/// for absent meanwhile.
public struct AutomaticTokenStore: TokenStore {
    private let desktop: Desktop
    private let files: FileTokenStore

    /// Looks for a Secret Service, and takes files in `directory` where there is none.
    ///
    /// In the Secret Service, the credentials are those of `directory`, too; `takesOver` is as for
    /// `SecretServiceTokenStore`.
    public init(directory: String, takesOver: Bool) async {
        self.init(files: FileTokenStore(directory: directory)) {
            await SecretServiceTokenStore(folder: directory, takesOver: takesOver)
        }
        _ = await desktop.store()
    }

    /// `look` gives the desktop's store, once there is one.
    init(
        files: FileTokenStore,
        look: @escaping @Sendable () async -> (any TokenStore)?
    ) {
        self.files = files
        desktop = Desktop(look: look)
    }

    public var place: String { desktop.known?.place ?? files.place }

    public func place(of account: String) async -> String {
        let isFile = (try? await isFile(account)) ?? true
        return isFile ? files.place : place
    }

    public func lock(
        _ account: String,
        patience: Duration
    ) async throws(SignInError) -> CredentialsLock {
        try await files.lock(account, patience: patience)
    }

    public func credentials(of account: String) async throws(SignInError) -> Credentials? {
        if let found = try await files.credentials(of: account) { return found }
        guard let store = await desktop.store() else {
            guard files.hasMark(account) else { return nil }
            throw .keyringSilent
        }
        let found = try await store.credentials(of: account)
        // Those of an earlier version have none.
        if found != nil, !files.hasMark(account) { try? files.setMark(account) }
        return found
    }

    public func keep(
        _ credentials: Credentials,
        of account: String
    ) async throws(SignInError) {
        // Those that began as a file stay one: a service without a desktop must find them.
        if SecretServiceTokenStore.takes(credentials), let store = await desktop.store(),
            try await !isFile(account)
        {
            try files.setMark(account)
            try await store.keep(credentials, of: account)
        } else {
            try await files.keep(credentials, of: account)
            try files.removeMark(account)
        }
    }

    /// Whether the account's credentials are a file, in whatever state.
    private func isFile(_ account: String) async throws(SignInError) -> Bool {
        do throws(SignInError) { return try await files.credentials(of: account) != nil } catch {
            guard error == .damaged else { throw error }
            return true
        }
    }

    public func forget(_ account: String) async throws(SignInError) {
        try await files.forget(account)
        if let store = await desktop.store() {
            try await store.forget(account)
        } else if files.hasMark(account) {
            throw .keyringSilent
        }
        try files.removeMark(account)
    }
}

/// The desktop's store, looked for until there is one.
private final class Desktop: Sendable {
    private let look: @Sendable () async -> (any TokenStore)?
    private let found = Mutex<(any TokenStore)?>(nil)

    init(look: @escaping @Sendable () async -> (any TokenStore)?) { self.look = look }

    var known: (any TokenStore)? { found.withLock(\.self) }

    func store() async -> (any TokenStore)? {
        if let known { return known }
        let store = await look()
        return found.withLock { found in
            found = found ?? store
            return found
        }
    }
}
