import Foundation

/// Where Oort keeps what: the folders of the XDG Base Directory Specification, or one folder that
/// `OORT_FOLDER` names.
struct Folders: Hashable, Sendable {
    /// `config.toml` lies here.
    let config: String
    /// The accounts, the catalog, staged contents and the log: what must not be lost.
    let state: String
    /// What can be fetched again.
    let cache: String
    /// The control socket of the running mount.
    let runtime: String
    /// The home folder.
    let home: String

    /// The environment variable that has everything in one folder, apart from the person's own.
    static let variable = "OORT_FOLDER"

    /// The folders that this environment names, or the usual ones; `session` is the folder of the
    /// person's session, if there is one.
    ///
    /// - Throws: `Failure` when no home folder is known.
    init(
        environment: [String: String] = ProcessInfo.processInfo.environment,
        session: String = "/run/user/\(getuid())"
    ) throws(Failure) {
        // The specification says that relative paths are to be ignored.
        func absolute(_ name: String) -> String? {
            environment[name].flatMap { $0.hasPrefix("/") ? $0 : nil }
        }
        let home = absolute("HOME") ?? NSHomeDirectory()
        guard home.hasPrefix("/") else {
            throw Failure("No home folder is known.", advice: "Set HOME and try again.")
        }
        self.home = home
        if let folder = absolute(Self.variable) {
            config = folder + "/config"
            state = folder + "/state"
            cache = folder + "/cache"
            runtime = folder + "/run"
            return
        }
        config = (absolute("XDG_CONFIG_HOME") ?? home + "/.config") + "/oort"
        state = (absolute("XDG_STATE_HOME") ?? home + "/.local/state") + "/oort"
        cache = (absolute("XDG_CACHE_HOME") ?? home + "/.cache") + "/oort"
        if let runtime = absolute("XDG_RUNTIME_DIR") {
            self.runtime = runtime + "/oort"
        } else if Self.isOwned(session) {
            runtime = session + "/oort"
        } else {
            // Not in /tmp, where another user may create it first, unless a socket's path would be too long
            // for Linux.
            let own = state + "/run"
            runtime = "\(own)/control.sock".utf8.count < 108 ? own : "/tmp/oort-\(getuid())"
        }
    }

    /// The settings.
    var settingsFile: String { config + "/config.toml" }
    /// The list of accounts.
    var accountsFile: String { state + "/accounts.json" }
    /// Tokens, where the desktop has no keyring.
    var tokensFolder: String { state + "/tokens" }
    /// Whether the state lies where it does when the environment says nothing else.
    var isUsualState: Bool { state == home + "/.local/state/oort" }
    /// The catalog.
    var catalogFile: String { state + "/catalog.sqlite" }
    /// Contents that the service does not have yet.
    var stagedFolder: String { state + "/staged" }
    /// Limits and pauses.
    var paceFile: String { state + "/pace.json" }
    /// The notices that the desktop showed.
    var noticesFile: String { state + "/notices.json" }
    /// Of the accounts whose services know no ids: what lies where, a file each.
    var placesFolder: String { state + "/places" }
    /// The map of places of an account.
    func placesFile(ofAccount name: String) -> String { placesFolder + "/\(name).sqlite" }
    /// What the name of the file has beyond that where the service keeps nothing of a person.
    static let listEnding = ".list"
    /// What it has beyond that where uploads that were begun are noted.
    static let uploadsEnding = ".uploads"
    /// A new folder for sockets of a connection's own; its path is short, as sockets' paths must be.
    func socketFolder() -> String {
        let name = String(UInt64.random(in: .min ... .max), radix: 36)
        // ssh adds 19 bytes, and Linux takes 108.
        return runtime.utf8.count < 70 ? "\(runtime)/\(name)" : "/tmp/oort-\(name)"
    }
    /// The running mount's log.
    var logFile: String { state + "/oort.log" }
    /// Held by the running mount.
    var lockFile: String { state + "/lock" }
    /// The running mount's control socket.
    var socket: String { runtime + "/control.sock" }
    /// The mount point unless another is named.
    var defaultMountPoint: String { home + "/clouds" }

    /// Makes the folders that a mount needs, each for the user alone.
    ///
    /// - Throws: `Failure` naming the folder.
    func make() throws(Failure) {
        for path in [state, cache, runtime] { try Self.makePrivate(path) }
    }

    /// Makes one folder with mode 0700, or checks that it is ours alone.
    ///
    /// - Throws: `Failure` naming the folder: it cannot be made, or belongs to another user.
    static func makePrivate(_ path: String) throws(Failure) {
        do {
            try FileManager.default.createDirectory(
                atPath: path,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
        } catch {
            throw Failure(
                "The folder \(path) cannot be made: \(error.reason)",
                advice: "Check the permissions and the free space of the disk that it lies on."
            )
        }
        guard isOwned(path) else {
            throw Failure(
                "The folder \(path) does not belong to you, or is a link.",
                advice: "Remove it, or set XDG_RUNTIME_DIR to a folder of your own."
            )
        }
        unsafe chmod(path, 0o700)
    }

    /// Whether a real folder lies there that belongs to this user.
    private static func isOwned(_ path: String) -> Bool {
        var status = stat()
        return unsafe lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
            && status.st_uid == getuid()
    }
}
