/// Keeps new credentials in the Secret Service where one answers and takes them, else in files; finds
/// them in either, and leaves them where they are.
public struct AutomaticTokenStore: TokenStore {
    private let desktop: (any TokenStore)?
    private let files: any TokenStore

    /// Looks for a Secret Service, and takes files in `directory` where there is none.
    ///
    /// In the Secret Service, the credentials are those of `directory`, too; `takesOver` is as for
    /// `SecretServiceTokenStore`.
    public init(directory: String, takesOver: Bool) async {
        self.init(
            desktop: await SecretServiceTokenStore(folder: directory, takesOver: takesOver),
            files: FileTokenStore(directory: directory)
        )
    }

    init(desktop: (any TokenStore)?, files: any TokenStore) {
        self.desktop = desktop
        self.files = files
    }

    public var place: String { desktop?.place ?? files.place }

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
        return try await desktop?.credentials(of: account)
    }

    public func keep(
        _ credentials: Credentials,
        of account: String
    ) async throws(SignInError) {
        // Those that began as a file stay one: a service without a desktop must find them.
        if let desktop, SecretServiceTokenStore.takes(credentials),
            try await !isFile(account)
        {
            try await desktop.keep(credentials, of: account)
        } else {
            try await files.keep(credentials, of: account)
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
        try await desktop?.forget(account)
    }
}
