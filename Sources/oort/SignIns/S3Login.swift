import Foundation
import OortModel
import OortS3
import OortSignIn

/// A sign-in at a bucket of S3.
struct S3Login {
    /// Where the keys come from.
    enum KeySource: Sendable {
        /// A profile of `~/.aws`.
        case profile(String)
        /// A key file; `-` is standard input.
        case file(String)
        /// Given themselves.
        case keys(S3Keys)
        /// The environment of this process.
        case environment
        /// Nowhere: a public bucket.
        case anonymous
    }

    /// `BUCKET[/PREFIX]`.
    var bucket: String
    /// The account's name; nil finds one.
    var name: String?
    /// A prefix below that of `bucket`.
    var root: String?
    /// The store's address; nil is Amazon's.
    var endpoint: String?
    /// The region; nil finds it.
    var region: String?
    /// Whether the bucket is named in the path.
    var isPathStyle = false
    /// Where the keys come from.
    var keys: KeySource

    /// Signs in; the account is then on the list.
    ///
    /// - Throws: `Failure` in words for the person.
    func run(_ context: SignInContext) async throws {
        guard let service = Services.named("s3") else { return }
        let environment = ProcessInfo.processInfo.environment
        let profile: String? = if case .profile(let name) = keys { name } else { nil }
        let found: S3Discovery.Finding
        let keys: S3Keys
        do {
            let known = try profile.map { try S3Profile($0, environment: environment) }
            // As at the other kinds a slash before it or after it says nothing.
            let names = root?.parts(between: "/").filter { !$0.isEmpty } ?? []
            let place = ([bucket[...]] + names).joined(separator: "/")
            let wish = try S3Wish(
                place,
                endpoint: endpoint ?? known?.endpoint,
                region: region ?? known?.region,
                isPathStyle: isPathStyle ? true : known?.isPathStyle
            )
            keys = try await self.keys(known, environment)
            found = try await S3Discovery(wire: context.accounts.http, logger: SilentLog.logger)
                .find(wish, keys: keys)
        } catch let error as S3KeysError {
            throw Failure("\(error.description).")
        } catch let error as ProviderError {
            throw failure(error, context.person)
        }
        for remark in found.remarks { context.person.tell(TerminalText.line(remark)) }
        let kept = S3Bucket(account: found.account, profile: profile)
        let secret = Credentials(client: nil, tokens: Tokens(accessToken: keys.secret))
        try await context.entry.add(
            profile == nil ? secret : nil,
            at: String(decoding: try JSONEncoder().encode(kept), as: UTF8.self),
            service: service,
            name: name
        )
    }

    /// A sign-in that came to nothing, in words.
    private func failure(_ error: ProviderError, _ person: any SignInPerson) -> Failure {
        let store = TerminalText.line(endpoint ?? "Amazon S3")
        let bucket = TerminalText.line(bucket)
        let detail = TerminalText.line(error.detail)
        return switch error.kind {
        case .offline, .outcomeUnknown, .rateLimited:
            Failure(
                "\(store) cannot be reached: \(detail)",
                advice: "Look at \(person.name(.endpoint)) and the network, and at HTTPS_PROXY and "
                    + "ca_file in the settings."
            )
        case .malformedAnswer:
            Failure(
                "What answers at \(store) is no store of S3's kind: \(detail)",
                advice: "Look at \(person.name(.endpoint)). A network where one has to log in "
                    + "first answers so, too."
            )
        case .signedOut:
            Failure(
                "\(store) refuses the keys: \(detail)",
                advice: "Look at both of the keys, and at where they come from."
            )
        default:
            Failure(
                "The bucket \(bucket) at \(store) cannot be used: \(detail)",
                advice: "Look at its name, at the keys' rights, at \(person.name(.region)) "
                    + "and \(person.name(.endpoint))."
            )
        }
    }

    private func keys(
        _ profile: S3Profile?,
        _ environment: [String: String]
    ) async throws -> S3Keys {
        if let profile { return try await profile.currentKeys() }
        return switch keys {
        case .file(let file): try S3Keys(keyFile: try SecretInput.bytes(of: file))
        case .keys(let keys): keys
        case .environment: try S3Keys(environment: environment)
        case .profile, .anonymous: .anonymous
        }
    }
}
