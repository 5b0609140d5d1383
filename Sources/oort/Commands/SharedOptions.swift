import ArgumentParser

/// What every command needs: the folders and the settings in them.
struct Surroundings: Sendable {
    /// The user's folders.
    let folders: Folders
    /// What `config.toml` says.
    let settings: Settings

    /// Reads the settings.
    ///
    /// - Throws: `Failure` naming file and key.
    init() throws(Failure) {
        try self.init(folders: Folders())
    }

    /// Reads the settings of these folders.
    init(folders: Folders) throws(Failure) {
        self.folders = folders
        settings = try SettingsFile(
            path: folders.settingsFile,
            serviceNames: Services.all.map(\.name)
        ).read()
    }

    /// Where the clouds are mounted unless a command says otherwise.
    var usualMountPoint: String {
        settings.mountPoint.map { MountPoint($0).path } ?? folders.defaultMountPoint
    }
}

/// The flags of a mount.
struct MountFlags: ParsableArguments {
    @Flag(help: "Refuse every change.")
    var readOnly = false

    @Flag(
        help: """
            Let other users of this machine in (needs user_allow_other in /etc/fuse.conf); what \
            they may do there --umask says.
            """
    )
    var allowOther = false

    @Option(
        help: ArgumentHelp(
            """
            The permissions that what the clouds hold does not give, in octal (default: 022, or \
            077 with --allow-other: nobody else reads anything).
            """,
            valueName: "mask"
        ),
        transform: { text in
            guard let mask = UInt16(text, radix: 8), mask <= 0o777 else {
                throw ValidationError("--umask must be octal, from 000 to 777.")
            }
            return mask
        }
    )
    var umask: UInt16?

    @Option(
        help: ArgumentHelp(
            "The most room for contents that can be fetched again, such as 20G.",
            valueName: "size"
        )
    )
    var cacheSize: ByteSize?

    @Option(
        help: ArgumentHelp(
            "How often to ask the clouds for news, such as 60s.",
            valueName: "time"
        )
    )
    var pollInterval: TimeSpan?

    @Option(
        help: ArgumentHelp(
            "How long a file rests after its last change before it goes out, such as 1s.",
            valueName: "time"
        )
    )
    var settle: TimeSpan?

    @Option(
        help: ArgumentHelp(
            "Trust the certificates of this PEM file in place of the system's.",
            valueName: "file"
        )
    )
    var caFile: String?

    @Flag(name: .shortAndLong, help: "Log every step.")
    var verbose = false

    func validate() throws {
        // Without a pause the services would be asked as fast as they answer.
        if pollInterval?.duration == .zero {
            throw ValidationError("--poll-interval must be above 0.")
        }
        if let cacheSize, cacheSize.bytes < Settings.leastCache {
            throw ValidationError(
                "--cache-size must be at least 1M; \(cacheSize.bytes) are bytes: is a unit missing, "
                    + "as in 20G?"
            )
        }
    }

    /// The mount that the flags and the settings ask for together; flags win.
    func options(
        _ surroundings: Surroundings,
        mountPoint: String?
    ) -> MountOptions {
        var settings = surroundings.settings
        if let cacheSize { settings.cacheSize = cacheSize }
        if let pollInterval { settings.pollInterval = pollInterval }
        if let settle { settings.settle = settle }
        if let caFile { settings.caFile = MountPoint(caFile).path }
        let path =
            mountPoint ?? settings.mountPoint ?? surroundings.folders.defaultMountPoint
        return MountOptions(
            folders: surroundings.folders,
            settings: settings,
            mountPoint: MountPoint(path),
            isReadOnly: readOnly,
            allowsOtherUsers: allowOther,
            umask: umask ?? (allowOther ? 0o077 : 0o022),
            isVerbose: verbose
        )
    }
}
