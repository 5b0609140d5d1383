import ArgumentParser
import Foundation
import OortModel
import OortS3
import OortSignIn

/// `oort login s3`.
struct LoginS3Command: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "s3",
        abstract: "A bucket of S3, at Amazon or at any other store.",
        discussion: """
            What the store can do is tried once, with a few small objects that go again.

            Keys come from one of: a file of the form {"access_key_id": "...", \
            "secret_access_key": "...", "session_token": "..."}, a profile of ~/.aws, the \
            environment (AWS_ACCESS_KEY_ID and so on), or none (--anonymous).
            """
    )

    @Argument(help: ArgumentHelp("The bucket.", valueName: "bucket[/prefix]"))
    var bucket: String

    @Option(help: "Your name for the account, which is its folder (default: s3).")
    var name: String?

    @Option(help: ArgumentHelp("Where the account begins: a prefix.", valueName: "folder"))
    var root: String?

    @Option(help: ArgumentHelp("The store's address (default: Amazon's).", valueName: "url"))
    var endpoint: String?

    @Option(help: "The region, where it is not found by itself.")
    var region: String?

    @Flag(help: "Name the bucket in the path and not in the host.")
    var pathStyle = false

    @Option(help: ArgumentHelp("A profile of ~/.aws.", valueName: "name"))
    var profile: String?

    @Option(help: ArgumentHelp("A file with keys (- is standard input).", valueName: "file"))
    var keyFile: String?

    @Flag(help: "Take the keys of the environment, and keep them.")
    var env = false

    @Flag(help: "Without keys: a public bucket.")
    var anonymous = false

    func validate() throws {
        let ways = [profile != nil, keyFile != nil, env, anonymous].filter(\.self).count
        guard ways == 1 else {
            throw ValidationError(
                "Give one of --profile, --key-file, --env and --anonymous."
            )
        }
    }

    func run() async throws {
        let surroundings = try Surroundings()
        try surroundings.folders.make()
        if let name { try AccountName.check(name) }
        guard let service = Services.named("s3") else { return }
        let accounts = try await Accounts(surroundings)
        let environment = ProcessInfo.processInfo.environment
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
                isPathStyle: pathStyle ? true : known?.isPathStyle
            )
            keys = try await self.keys(known, environment)
            found = try await S3Discovery(wire: accounts.http, logger: SilentLog.logger)
                .find(wish, keys: keys)
        } catch let error as S3KeysError {
            throw Failure("\(error.description).")
        } catch let error as ProviderError {
            throw failure(error)
        }
        for remark in found.remarks { Console.write(TerminalText.line(remark)) }
        let kept = S3Bucket(account: found.account, profile: profile)
        let secret = Credentials(client: nil, tokens: Tokens(accessToken: keys.secret))
        try await NewAccount(surroundings, accounts).add(
            profile == nil ? secret : nil,
            at: String(decoding: try JSONEncoder().encode(kept), as: UTF8.self),
            service: service,
            name: name
        )
        await accounts.shutdown()
    }

    /// A sign-in that came to nothing, in words.
    private func failure(_ error: ProviderError) -> Failure {
        let store = TerminalText.line(endpoint ?? "Amazon S3")
        let bucket = TerminalText.line(bucket)
        let detail = TerminalText.line(error.detail)
        return switch error.kind {
        case .offline, .outcomeUnknown, .rateLimited:
            Failure(
                "\(store) cannot be reached: \(detail)",
                advice: "Look at --endpoint and the network, and at HTTPS_PROXY and ca_file in the "
                    + "settings."
            )
        case .malformedAnswer:
            Failure(
                "What answers at \(store) is no store of S3's kind: \(detail)",
                advice: "Look at --endpoint. A network where one has to log in first answers so, "
                    + "too."
            )
        case .signedOut:
            Failure(
                "\(store) refuses the keys: \(detail)",
                advice: "Look at both of the keys, and at where they come from."
            )
        default:
            Failure(
                "The bucket \(bucket) at \(store) cannot be used: \(detail)",
                advice: "Look at its name, at the keys' rights, at --region and --endpoint."
            )
        }
    }

    private func keys(
        _ profile: S3Profile?,
        _ environment: [String: String]
    ) async throws -> S3Keys {
        if let profile { return try await profile.currentKeys() }
        if let keyFile { return try S3Keys(keyFile: try SecretInput.bytes(of: keyFile)) }
        return env ? try S3Keys(environment: environment) : .anonymous
    }
}
