import ArgumentParser
import Foundation
import OortModel
import OortSFTP

/// `oort login sftp`.
struct LoginSFTPCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sftp",
        abstract: "A server that your own ssh reaches.",
        discussion: """
            Oort starts your ssh, so that your ~/.ssh/config, keys, agent and known hosts count. If \
            the server is not known yet, or asks something, ssh asks you here, once; later it must \
            come in by itself: with a key, or an agent that runs.

            What you delete goes to the folder .oort-trash of the account and stays there for 30 \
            days.
            """
    )

    @Argument(help: ArgumentHelp("The server.", valueName: "[user@]host[:port][/path]"))
    var server: String

    @Option(help: "Your name for the account, which is its folder (default: sftp).")
    var name: String?

    @Option(
        help: ArgumentHelp(
            "The folder where the account begins; without a slash in front, from where you log in.",
            valueName: "folder"
        )
    )
    var root: String?

    @Option(
        help: ArgumentHelp("A file with your private key.", valueName: "file"),
        completion: .file()
    )
    var identity: String?

    @Option(
        help: ArgumentHelp(
            "An option as in ssh_config; may be given often.",
            valueName: "key=value"
        )
    )
    var sshOption: [String] = []

    func run() async throws {
        let surroundings = try Surroundings()
        try surroundings.folders.make()
        if let name { try AccountName.check(name) }
        let address = try address()
        guard let service = Services.named("sftp") else { return }
        let text = String(decoding: try JSONEncoder().encode(address), as: UTF8.self)
        let accounts = try await Accounts(surroundings)
        let newcomer = NewAccount(surroundings, accounts)
        do {
            try await newcomer.add(nil, at: text, service: service, name: name)
        } catch let failure as Failure where isatty(STDIN_FILENO) == 1 {
            // ssh may have something to ask: it does so by itself, here.
            Console.error("\(failure.message)\n\nssh is asked to log in here once:")
            guard try askBySSH(address) else { throw failure }
            try await newcomer.add(nil, at: text, service: service, name: name)
        }
        await accounts.shutdown()
    }

    private func address() throws(Failure) -> SFTPAddress {
        guard var address = SFTPAddress(server) else {
            throw Failure(
                "\"\(TerminalText.line(server))\" is no server.",
                advice: "Write it as [USER@]HOST[:PORT][/PATH], for example ada@nas:2222/home/ada."
            )
        }
        if let root { address.folder = root }
        if let identity {
            let path = MountPoint(identity).path
            guard FileManager.default.isReadableFile(atPath: path) else {
                throw Failure(
                    "The key \(path) cannot be read.",
                    advice: "Name the file with your private key, or leave it to ssh and its agent."
                )
            }
            address.identity = path
        }
        for option in sshOption where !option.contains("=") {
            throw Failure(
                "\"\(TerminalText.line(option))\" is no option of ssh.",
                advice: "Write it as in ssh_config with an equals sign: --ssh-option ProxyJump=gate"
            )
        }
        address.options = sshOption
        return address
    }

    /// Has ssh log in on this terminal, so that it can ask what it has to; whether it came in.
    private func askBySSH(_ address: SFTPAddress) throws -> Bool {
        let process = Process()
        process.executableURL = URL(filePath: SSHConnection.program)
        process.arguments = address.dialogueArguments
        process.standardInput = FileHandle.standardInput
        try process.run()
        process.waitUntilExit()
        // A server without a shell says so and ends with another code than ssh's own.
        return process.terminationReason == .exit && process.terminationStatus != 255
    }
}
