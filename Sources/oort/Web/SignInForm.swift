import OortSignIn
import OortWeather
import OortWebDAV

/// What the page asks for to sign in at one kind of service: the same as `oort login`.
struct SignInForm: Sendable {
    /// One thing to fill in.
    struct Field: Sendable {
        /// How it is filled in.
        enum Kind: Sendable {
            case text
            /// Several lines.
            case lines
            /// Never shown again.
            case secret
            /// Several lines that are never shown again.
            case secretLines
            case check
            /// One of some values, with their words.
            case choice([(value: String, words: String)])
        }

        /// Its name in the form.
        var name: String
        /// For people.
        var label: String
        /// What else to know.
        var hint: String?
        var kind = Kind.text
        var isRequired = false
        /// Whether few people need it.
        var isRare = false

        /// Whether what is filled in is sent back with the form.
        var isShown: Bool {
            switch kind {
            case .secret, .secretLines: false
            case .text, .lines, .check, .choice: true
            }
        }
    }

    /// A form with what a person filled in that is no secret.
    struct Filled: Hashable, Sendable {
        /// The service's name.
        var service: String
        /// Values by the names of fields.
        var values: [String: String]
        /// Whether an account is signed in to again that has its name already.
        var isAgain: Bool
    }

    /// The service.
    let service: CloudService
    /// In order.
    let fields: [Field]

    /// The form of a service; `hasRegistration` is whether a client id is known for one with OAuth.
    init(_ service: CloudService, hasRegistration: Bool = true) {
        self.service = service
        var fields: [Field]
        switch service.name {
        case "nextcloud": fields = Self.nextcloud
        case "webdav": fields = Self.webDAV
        case "sftp": fields = Self.sftp
        case "ftp": fields = Self.ftp
        case "s3": fields = Self.s3
        case "weather": fields = Self.weather
        default: fields = Self.cloud(service, hasRegistration)
        }
        fields.append(
            Field(
                name: "name",
                label: Self.label(.name),
                hint: "Its folder has it. Empty: \(service.name), or with a number if taken.",
                isRare: true
            )
        )
        self.fields = fields
    }

    /// What a field is called that `oort login` has as a flag.
    static func label(_ option: SignInOption) -> String {
        switch option {
        case .name: "Name of the account"
        case .root: "Begin at this folder"
        case .user: "User"
        case .space: "Space"
        case .passwordFile: "Password"
        case .identity: "File of your private key"
        case .sshOption: "Options of ssh"
        case .plain: "Without encryption"
        case .endpoint: "Address of the store"
        case .region: "Region"
        case .tokenFile: "Tokens"
        case .clientID: "Client id"
        case .clientSecretFile: "Client secret"
        }
    }

    private static func root(_ hint: String? = nil) -> Field {
        Field(name: "root", label: label(.root), hint: hint, isRare: true)
    }

    private static func password(_ hint: String? = nil, isRare: Bool = false) -> Field {
        Field(
            name: "password",
            label: label(.passwordFile),
            hint: hint,
            kind: .secret,
            isRare: isRare
        )
    }

    private static let space = Field(
        name: "space",
        label: label(.space),
        hint: "At an OpenCloud or Infinite Scale; empty: your own.",
        isRare: true
    )

    private static let nextcloud = [
        Field(
            name: "address",
            label: "Address of the server",
            hint: "Whatever you see in your browser there.",
            isRequired: true
        ),
        Field(
            name: "user",
            label: label(.user),
            hint: "Empty: you log in on the server's own page, and Oort never sees your password.",
            isRare: true
        ),
        password(
            "An app password of the server's settings, under Security; at an OpenCloud or Infinite Scale "
                + "an app token.",
            isRare: true
        ),
        root(), space,
    ]

    private static let webDAV = [
        Field(
            name: "address",
            label: "Address of your files",
            hint: "For example https://dav.example.org/files",
            isRequired: true
        ),
        Field(name: "user", label: label(.user)),
        password("At an OpenCloud or Infinite Scale an app token."),
        Field(
            name: "dialect",
            label: "Kind of server",
            kind: .choice(
                [("", "recognised by itself")]
                    + WebDAVDialect.allCases.map { ($0.rawValue, $0.rawValue) }
            ),
            isRare: true
        ),
        root(), space,
    ]

    private static let sftp = [
        Field(
            name: "address",
            label: "Server",
            hint: "[user@]host[:port][/path], or a name in your ~/.ssh/config",
            isRequired: true
        ),
        password(
            "Empty: your keys and your agent let you in. With a key's file it is that key's passphrase."
        ),
        Field(
            name: "identity",
            label: label(.identity),
            hint: "Its path on this machine, for example ~/.ssh/id_ed25519",
            isRare: true
        ),
        Field(
            name: "options",
            label: label(.sshOption),
            hint: "As in ssh_config, KEY=VALUE, one a line.",
            kind: .lines,
            isRare: true
        ),
        root("Without a slash in front, from where you log in."),
    ]

    private static let ftp = [
        Field(
            name: "address",
            label: "Server",
            hint: "[user@]host[:port][/path]; ftps://host is for servers that encrypt from the "
                + "first byte.",
            isRequired: true
        ),
        password(),
        Field(
            name: "plain",
            label: label(.plain),
            hint: "Everybody on the way can then read your password and your files.",
            kind: .check,
            isRare: true
        ),
        root("Without a slash in front, from where you log in."),
    ]

    private static let s3 = [
        Field(name: "bucket", label: "Bucket", hint: "bucket or bucket/prefix", isRequired: true),
        Field(name: "endpoint", label: label(.endpoint), hint: "Empty: Amazon's."),
        Field(name: "key_id", label: "Access key id", hint: "Empty for a public bucket."),
        Field(name: "key", label: "Secret access key", kind: .secret),
        Field(
            name: "region",
            label: label(.region),
            hint: "Where it is not found by itself.",
            isRare: true
        ),
        Field(
            name: "path_style",
            label: "Name the bucket in the path and not in the host",
            kind: .check,
            isRare: true
        ),
        Field(
            name: "session_token",
            label: "Session token",
            hint: "Only where the keys came with one.",
            kind: .secretLines,
            isRare: true
        ),
        Field(
            name: "profile",
            label: "Profile of ~/.aws",
            hint: "In place of the keys: they stay there.",
            isRare: true
        ),
        root("A prefix."),
    ]

    private static let weather = [
        Field(
            name: "source",
            label: "Source",
            kind: .choice(WeatherSourceName.allCases.map { ($0.rawValue, $0.title) })
        ),
        Field(
            name: "contact",
            label: "E-mail or web address of yours",
            hint: "It goes with the requests; MET Norway wishes for one."
        ),
    ]

    private static func cloud(_ service: CloudService, _ hasRegistration: Bool) -> [Field] {
        let guide = service.oauth?.registration
        var fields = [
            Field(
                name: "client_id",
                label: hasRegistration ? label(.clientID) : guide?.idTitle ?? label(.clientID),
                hint: hasRegistration
                    ? "Of another registration than the one that is known."
                    : guide.map { "It has this form: \($0.idForm)." },
                isRequired: !hasRegistration,
                isRare: hasRegistration
            )
        ]
        let secretTitle = hasRegistration ? label(.clientSecretFile) : guide?.secretTitle
        if let secretTitle {
            fields.append(
                Field(
                    name: "client_secret",
                    label: secretTitle,
                    kind: .secret,
                    isRare: hasRegistration
                )
            )
        }
        if service.oauth?.beginsAtFolders == true { fields.append(root("/ is all of it.")) }
        fields.append(
            Field(
                name: "tokens",
                label: label(.tokenFile),
                hint: "In place of the service's page: JSON with access_token and refresh_token.",
                kind: .secretLines,
                isRare: true
            )
        )
        return fields
    }
}
