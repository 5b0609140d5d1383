import Foundation
import OortProcesses
import OortSFTP
import OortSignIn
import OortSimulators

/// The machine's own OpenSSH server for one account of the demo.
///
/// It has no port: `ssh` starts it for each connection (`ProxyCommand`) and it ends with that. Its keys,
/// its settings and the files lie in the demo's folder; nothing of the person's `~/.ssh` is changed, and no
/// key in there is tried.
struct DemoSFTPServer: Sendable {
    /// Where the account's files lie on this machine.
    let files: String
    /// How `ssh` gets there.
    let address: SFTPAddress

    /// Where systems have the server; it is seldom on a person's PATH.
    private static let places = ["/usr/sbin/sshd", "/usr/bin/sshd", "/usr/local/sbin/sshd"]

    /// Makes the keys, the settings and the sample account in the demo's folder.
    ///
    /// - Throws: `Failure` where the server is not installed, or something cannot be made.
    init(in demo: DemoFolders) async throws(Failure) {
        let environment = ProcessInfo.processInfo.environment
        guard let program = Self.places.first(where: FileManager.default.isExecutableFile) else {
            throw Failure(
                "OpenSSH's server is not installed.",
                advice: "Install it: openssh-server"
            )
        }
        guard let keygen = Program.find("ssh-keygen", environment) else {
            throw Failure("ssh-keygen is not installed.", advice: "Install openssh-client.")
        }
        let folder = demo.path + "/sftp"
        files = folder + "/files"
        for path in [folder, files] { try Folders.makePrivate(path) }
        for name in ["host", "user"] {
            let made = await Program(
                keygen,
                ["-q", "-t", "ed25519", "-N", "", "-C", "oort-demo", "-f", "\(folder)/\(name)"],
                environment: environment
            )
            .outcome(timeLimit: .seconds(20))
            guard made?.status == 0 else { throw Failure("ssh-keygen makes no key.") }
        }
        do {
            try SampleAccount.onDisk.write(to: files)
            let hostKey = try String(contentsOfFile: "\(folder)/host.pub", encoding: .utf8)
            try Self.write("\(Self.host) \(hostKey)", to: "\(folder)/known")
            try Self.write(
                """
                HostKey \(folder)/host
                AuthorizedKeysFile \(folder)/user.pub
                PidFile none
                UsePAM no
                StrictModes no
                PasswordAuthentication no
                KbdInteractiveAuthentication no
                PermitRootLogin prohibit-password
                DisableForwarding yes
                SetEnv HOME=\(folder)
                Subsystem sftp internal-sftp
                ForceCommand internal-sftp
                LogLevel ERROR

                """,
                to: "\(folder)/config"
            )
        } catch {
            throw Failure(
                "The files of the demo's SFTP server cannot be written: "
                    + error.reason,
                advice: "Free some space in /tmp and try again."
            )
        }
        guard var address = SFTPAddress("\(Self.host)\(files)") else {
            throw Failure("\(files) is no place for an SFTP server.")
        }
        address.user = NSUserName()
        address.identity = "\(folder)/user"
        address.options = [
            "ProxyCommand=\(program) -i -f \(folder)/config -E \(folder)/log",
            "HostKeyAlias=\(Self.host)", "UserKnownHostsFile=\(folder)/known",
            "GlobalKnownHostsFile=/dev/null", "StrictHostKeyChecking=yes", "IdentityAgent=none",
            "IdentitiesOnly=yes",
        ]
        self.address = address
    }

    /// The name under which `ssh` knows the server.
    private static let host = "oort-demo"

    private static func write(_ text: String, to path: String) throws {
        try Data(text.utf8).write(to: URL(filePath: path))
    }
}
