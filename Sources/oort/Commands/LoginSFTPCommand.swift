import ArgumentParser

/// `oort login sftp`.
struct LoginSFTPCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sftp",
        abstract: "A server that your own ssh reaches.",
        discussion: """
            Oort starts your ssh, so that your ~/.ssh/config, keys, agent and known hosts count. If \
            the server is not known yet, ssh asks you about its key here. If no key and no agent \
            let you in, your password comes from --password-file, or is asked for; with --identity \
            it is the passphrase of that key, which no server gets. It is kept with the desktop's \
            keyring, or in a file that only you can read, and tried once only.

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

    @Option(
        help: ArgumentHelp(
            "A file with your password and nothing else, or with --identity the key's passphrase (- is "
                + "standard input).",
            valueName: "file"
        ),
        completion: .file()
    )
    var passwordFile: String?

    func run() async throws {
        let login = SFTPLogin(
            server: server,
            name: name,
            root: root,
            identity: identity,
            options: sshOption
        )
        let person = TerminalPerson(passwordFile: passwordFile)
        try await SignInContext.run(named: name, for: person) { try await login.run($0) }
    }
}
