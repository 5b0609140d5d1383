import Foundation

/// The demo's own settings, state, cache and socket, in a temporary folder that goes with it.
struct DemoFolders: Sendable {
    /// What the names of the temporary folders begin with.
    static let prefix = "oort-demo-"

    /// The temporary folder.
    let path: String
    /// The folders in it.
    let folders: Folders

    /// Makes the temporary folder, for this user alone.
    ///
    /// - Throws: `Failure` when there is no room for it.
    init() throws(Failure) {
        // Not the user's TMPDIR, which may be too long for a socket's path.
        let path = "/tmp/" + Self.prefix + UUID().uuidString.prefix(8).lowercased()
        try Folders.makePrivate(path)
        self.path = path
        var environment = ProcessInfo.processInfo.environment
        environment[Folders.variable] = path
        folders = try Folders(environment: environment)
        try folders.make()
        try Folders.makePrivate(folders.config)
    }

    /// A file for the shell, after which `oort status` and the like speak to the demo.
    var environmentFile: String { path + "/env" }

    /// Writes the settings and the file for the shell.
    ///
    /// - Throws: `Failure` when there is no room for them.
    func write(settings: String) throws(Failure) {
        // Oort's own variable: every other program of that terminal keeps its settings.
        var lines = ["export \(Folders.variable)=\(Shell.quoted(path))"]
        if let program = try? FileManager.default.destinationOfSymbolicLink(
            atPath: "/proc/self/exe"
        ) {
            let folder = (program as NSString).deletingLastPathComponent
            lines.append("export PATH=\(Shell.quoted(folder)):\"$PATH\"")
        }
        do {
            try Data(settings.utf8).write(to: URL(filePath: folders.settingsFile))
            try Data((lines.joined(separator: "\n") + "\n").utf8)
                .write(to: URL(filePath: environmentFile))
        } catch {
            throw Failure(
                "The demo's settings cannot be written: \(error.reason)",
                advice: "Free some space in /tmp and try again."
            )
        }
    }

    /// Writes what `oort demo play` reads.
    ///
    /// - Throws: `Failure` when there is no room for it.
    func write(_ record: RunningDemo.Record) throws(Failure) {
        do {
            try JSONEncoder().encode(record)
                .write(to: URL(filePath: "\(path)/\(RunningDemo.Record.name)"))
        } catch {
            throw Failure(
                "The demo's record cannot be written: \(error.reason)",
                advice: "Free some space in /tmp and try again."
            )
        }
    }

    /// Takes everything away.
    func remove() { try? FileManager.default.removeItem(atPath: path) }
}
