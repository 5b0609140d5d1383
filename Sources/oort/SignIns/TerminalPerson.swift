import Foundation
import OortModel
import OortSFTP
import OortSignIn

/// Who signs in at a terminal.
struct TerminalPerson: SignInPerson {
    /// The file that holds the password, if the person named one; `-` is standard input.
    var passwordFile: String?
    /// Whether the browser of this machine is opened.
    var opensBrowser = true

    var isAtTerminal: Bool { true }

    var canBeAsked: Bool { isatty(STDIN_FILENO) == 1 }

    func name(_ option: SignInOption) -> String {
        switch option {
        case .user: "--user NAME"
        case .identity: "--identity FILE"
        case .passwordFile: "--password-file FILE, or - for standard input"
        case .tokenFile: "--token-file FILE"
        case .clientID: "--client-id ID"
        case .clientSecretFile: "--client-secret-file FILE"
        default: option.rawValue
        }
    }

    func again(_ arguments: String) -> String { "Try again: oort login \(arguments)" }

    func tell(_ words: String) { Console.write(words) }

    func warn(_ words: String) { Console.error(words) }

    func givenSecret() throws(Failure) -> String? {
        guard let passwordFile else { return nil }
        return try SecretInput.read(passwordFile, prompt: "")
    }

    func secret(_ prompt: String) throws(Failure) -> String {
        try SecretInput.read(passwordFile, prompt: prompt)
    }

    func appToken(madeAt page: String, user: String?) throws(Failure) -> String? {
        guard passwordFile == nil, canBeAsked else { return user }
        Console.write(
            "The server wants an app token, which you make on its page, under App Tokens:\n\n"
                + "  \(TerminalText.line(page))\n"
        )
        if let user { return user }
        Console.write("The name with which you log in there:")
        return readLine()?.trimmingCharacters(in: .whitespaces)
    }

    func lead(to consent: Consent) {
        Console.write("In a browser, here or on any device, go to\n\n  \(consent.page)\n")
        let program = TerminalText.line(consent.program ?? "Oort")
        Console.write("log in, and grant access to \"\(program)\".")
        if opensBrowser { Browser.open(consent.page) }
    }

    func introduce(_ connection: SSHConnection) async throws(SSHFailure) -> Bool {
        guard canBeAsked else { return false }
        Console.error("The server is not known yet; ssh asks you about its key:")
        try await connection.introduce()
        return true
    }

    func signedIn(_ account: NewAccount.Entered) {
        Console.write(account.words)
        if let place = account.secretsPlace {
            Console.write("What it signs in with lies in \(place).")
        }
        Console.write(account.isMounted ? "It is mounted now." : "Mount it: oort mount")
    }
}

/// A secret that a person gives on the way in: never an argument, which every process can read.
enum SecretInput {
    /// The secret in a file, on standard input (`-`), or typed at the prompt where no file is named.
    ///
    /// Line ends at the end are not part of it, of whichever system.
    ///
    /// - Throws: `Failure` where nothing can be read, or no person is there to be asked.
    static func read(_ file: String?, prompt: String) throws(Failure) -> String {
        let text: String
        if let file {
            text = try String(decoding: bytes(of: file), as: UTF8.self)
        } else {
            guard let typed = Console.readHiddenLine(prompt: prompt) else {
                throw Failure(
                    "The password is not given.",
                    advice: "Put it into a file that only you can read: --password-file FILE, or - "
                        + "for standard input."
                )
            }
            text = typed
        }
        guard let password = password(in: text) else {
            throw Failure(
                "The password is empty, or more than one line.",
                advice: "The file holds the password and nothing else."
            )
        }
        return password
    }

    /// A text without the line ends at its end; nil where that is no password.
    static func password(in text: String) -> String? {
        // Scalars, since to Swift a carriage return and a line feed are one character.
        var password = text.unicodeScalars
        while let last = password.last, last == "\n" || last == "\r" { password.removeLast() }
        guard !password.isEmpty, !password.contains(where: { "\n\r\0".unicodeScalars.contains($0) })
        else { return nil }
        return String(password)
    }

    /// What a file holds, or standard input (`-`): at most 64 KiB.
    static func bytes(of file: String) throws(Failure) -> [UInt8] {
        let path = file == "-" ? "/dev/stdin" : MountPoint(file).path
        do {
            let handle = try FileHandle(forReadingFrom: URL(filePath: path))
            defer { try? handle.close() }
            var bytes: [UInt8] = []
            while bytes.count <= 65_536, let more = try handle.read(upToCount: 65_536),
                !more.isEmpty
            {
                bytes += more
            }
            guard bytes.count <= 65_536 else {
                throw Failure("\(path) is too long.", advice: "Name a file with the secret alone.")
            }
            return bytes
        } catch let failure as Failure {
            throw failure
        } catch {
            throw Failure(
                "\(path) cannot be read: \(error.reason)",
                advice: "Name a file that you can read."
            )
        }
    }
}
