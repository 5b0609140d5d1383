import ArgumentParser

/// `oort login ftp`.
struct LoginFTPCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ftp",
        abstract: "A server that speaks FTP, encrypted (FTPS).",
        discussion: """
            The connection is encrypted, by TLS asked for on the usual port; ftps://HOST is for \
            servers that encrypt from the first byte, on a port of their own. --plain is for those \
            that cannot: everybody on the way can then read your password and your files.

            The server must list folders for programs (MLSD), as ProFTPD, Pure-FTPd and FileZilla \
            do; vsftpd does not. The password comes from --password-file, or is asked for here.

            What you delete goes to the folder .oort-trash of the account.
            """
    )

    @Argument(help: ArgumentHelp("The server.", valueName: "[user@]host[:port][/path]"))
    var server: String

    @Option(help: "Your name for the account, which is its folder (default: ftp).")
    var name: String?

    @Option(
        help: ArgumentHelp(
            "The folder where the account begins; without a slash in front, from where you log in.",
            valueName: "folder"
        )
    )
    var root: String?

    @Option(
        help: ArgumentHelp(
            "A file with the password and nothing else (- is standard input).",
            valueName: "file"
        ),
        completion: .file()
    )
    var passwordFile: String?

    @Flag(help: "Do not encrypt: all on the way can read your password and your files.")
    var plain = false

    func run() async throws {
        let login = FTPLogin(server: server, name: name, root: root, isPlain: plain)
        let person = TerminalPerson(passwordFile: passwordFile)
        try await SignInContext.run(named: name, for: person) { try await login.run($0) }
    }
}
