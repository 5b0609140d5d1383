import ArgumentParser

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
        let login = S3Login(
            bucket: bucket,
            name: name,
            root: root,
            endpoint: endpoint,
            region: region,
            isPathStyle: pathStyle,
            keys: keys
        )
        try await SignInContext.run(named: name, for: TerminalPerson()) { try await login.run($0) }
    }

    private var keys: S3Login.KeySource {
        if let profile { return .profile(profile) }
        if let keyFile { return .file(keyFile) }
        return env ? .environment : .anonymous
    }
}
