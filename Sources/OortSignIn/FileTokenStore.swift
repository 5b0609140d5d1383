import Crypto
import Foundation

/// Keeps credentials in files that only their owner can read, written atomically and durably.
public struct FileTokenStore: TokenStore {
    private let directory: String

    /// One file an account in `directory`, which is made (mode 0700) when the first is kept.
    public init(directory: String) { self.directory = directory }

    public var place: String { directory }

    public func lock(
        _ account: String,
        patience: Duration
    ) async throws(SignInError) -> CredentialsLock {
        try await CredentialsLock(
            path(of: account, ending: "lock"),
            of: account,
            patience: patience
        )
    }

    public func credentials(of account: String) async throws(SignInError) -> Credentials? {
        let path = path(of: account)
        let bytes: [UInt8]
        do {
            bytes = try [UInt8](Data(contentsOf: URL(filePath: path)))
        } catch CocoaError.fileReadNoSuchFile {
            return nil
        } catch {
            throw .store("\(path) cannot be read")
        }
        return try Credentials(json: bytes)
    }

    public func keep(
        _ credentials: Credentials,
        of account: String
    ) async throws(SignInError) {
        let path = path(of: account)
        do {
            try makeDirectory()
            try PrivateFile.replace(path, with: credentials.json)
        } catch {
            throw .store("\(path) cannot be written: \(error)")
        }
    }

    public func forget(_ account: String) async throws(SignInError) {
        let path = path(of: account)
        // What a process that died while it kept tokens left.
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        for name in names where name.hasSuffix(".new") {
            let left = "\(directory)/\(name)"
            if left.hasPrefix("\(path).") { try? FileManager.default.removeItem(atPath: left) }
        }
        do {
            try FileManager.default.removeItem(atPath: path)
        } catch CocoaError.fileNoSuchFile {
            return
        } catch {
            throw .store("\(path) cannot be removed: \(error)")
        }
    }

    // MARK: Marks

    /// Whether the account's credentials lie in the desktop's keyring, as far as a mark here says.
    func hasMark(_ account: String) -> Bool {
        FileManager.default.fileExists(atPath: path(of: account, ending: "keyring"))
    }

    /// Notes that the account's credentials lie in the desktop's keyring.
    func setMark(_ account: String) throws(SignInError) {
        let path = path(of: account, ending: "keyring")
        do {
            try makeDirectory()
            try PrivateFile.replace(path, with: [])
        } catch { throw .store("\(path) cannot be written: \(error)") }
    }

    /// Notes that the account's credentials do not lie in the desktop's keyring.
    func removeMark(_ account: String) throws(SignInError) {
        let path = path(of: account, ending: "keyring")
        do { try FileManager.default.removeItem(atPath: path) } catch CocoaError.fileNoSuchFile {
            return
        } catch { throw .store("\(path) cannot be removed: \(error)") }
    }

    private func makeDirectory() throws {
        try FileManager.default.createDirectory(
            atPath: directory,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
    }

    /// A file's name has 255 bytes at most, with what is added to it while it is written.
    private static func shortened(_ name: String) -> String {
        guard name.utf8.count > 150 else { return name }
        // No plain name has a tilde.
        let hash = SHA256.hash(data: Data(name.utf8)).prefix(16)
            .map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        return "\(name.prefix(100))~\(hash)"
    }

    private func path(of account: String, ending: String = "json") -> String {
        // No name can lead out of the folder, and none collides with another.
        let name = account.utf8.map { byte in
            let character = Character(UnicodeScalar(byte))
            let isPlain =
                character.isASCII
                && (character.isLetter || character.isNumber || "-_".contains(character))
            return isPlain ? String(character) : "%" + String(byte, radix: 16)
        }.joined()
        return "\(directory)/\(Self.shortened(name)).\(ending)"
    }
}
