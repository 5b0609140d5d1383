import OortModel
import OortTransport

/// What a sign-in finds out of a server.
public enum FTPSignIn {
    /// Why a sign-in came to nothing.
    public struct Failure: Error, Hashable, Sendable {
        /// The closed list of reasons.
        public enum Reason: Hashable, Sendable {
            /// The server could not be reached.
            case unreachable
            /// The server's certificate was refused.
            case untrusted
            /// The server takes no encrypted connection.
            case notEncrypted
            /// The server refuses the user or the password.
            case refused
            /// The server lists by LIST only.
            case noMachineListings
            /// The folder where the account is to begin is not there.
            case noFolder
            /// Anything else.
            case other
        }

        /// Why.
        public var reason: Reason
        /// The server's or libcurl's words.
        public var detail: String
    }

    /// Logs in once and asks the server what it can do.
    public static func account(
        at address: FTPAddress,
        password: String,
        settings: FTPSettings
    ) async throws(Failure) -> FTPAccount {
        let line = FTPLine(address, settings: settings, name: "oort-ftp-login")
        defer { line.stop() }
        let features: FTPReply
        do throws(FTPFailure) {
            features = try await line.ask([Array("FEAT".utf8)], password: password)[0]
        } catch {
            throw Failure(reason: reason(error.kind), detail: error.detail)
        }
        var account = FTPAccount(address: address, setsTimes: false, asksForFacts: false)
        guard features.isGood, let facts = facts(features) else {
            throw Failure(reason: .noMachineListings, detail: features.words)
        }
        account.asksForFacts = !["type", "size", "modify"].allSatisfy { facts.contains($0) }
        account.setsTimes = names(features).contains("MFMT")
        let client = FTPClient(account, secret: FixedToken(password), settings: settings)
        do throws(ProviderError) { _ = try await client.rootPath() } catch {
            await client.close()
            let isFolder = error.kind == .offline || error.isLastingRefusal
            throw Failure(reason: isFolder ? .noFolder : .other, detail: error.detail)
        }
        await client.close()
        return account
    }

    private static func reason(_ kind: FTPFailure.Kind) -> Failure.Reason {
        switch kind {
        case .unreachable, .lost, .tooMany: .unreachable
        case .untrusted: .untrusted
        case .notEncrypted: .notEncrypted
        case .loginRefused: .refused
        default: .other
        }
    }

    /// The features' lines, without the space in front, in capitals as far as the first space.
    private static func lines(_ reply: FTPReply) -> [(name: String, rest: String)] {
        reply.lines.dropFirst().dropLast().map { line in
            let text = String(decoding: line.drop { $0 == 0x20 }, as: UTF8.self)
            let parts = text.cut(atFirst: " ")
            return (
                String(parts?.before ?? text[...]).uppercased(),
                String(parts?.after ?? "")
            )
        }
    }

    private static func names(_ reply: FTPReply) -> Set<String> {
        Set(lines(reply).map(\.name))
    }

    /// The facts that the server gives by itself, in small letters; nil where it has no such listings.
    private static func facts(_ reply: FTPReply) -> Set<String>? {
        guard let line = lines(reply).first(where: { $0.name == "MLST" }) else {
            return names(reply).contains("MLSD") ? [] : nil
        }
        let facts = line.rest.lowercased().parts(between: ";").filter { $0.ends(with: "*") }
        return Set(facts.map { String($0.dropLast()) })
    }
}
