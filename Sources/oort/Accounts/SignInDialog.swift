import Foundation
import OortProcesses
import OortSignIn

/// Leads a person through a sign-in on the terminal.
struct SignInDialog {
    private let service: CloudService
    private let signIn: SignIn

    init(service: CloudService, signIn: SignIn) {
        self.service = service
        self.signIn = signIn
    }

    /// Signs in by whichever way fits.
    ///
    /// - Parameter opensBrowser: whether this machine's browser is to be used.
    /// - Returns: the tokens.
    /// - Throws: as `SignIn`.
    func run(opensBrowser: Bool) async throws(SignInError) -> Tokens {
        opensBrowser ? try await withBrowser() : try await withoutBrowser()
    }

    private func withBrowser() async throws(SignInError) -> Tokens {
        try await signIn.withBrowser { url in
            Console.write(
                "Your browser asks whether Oort may use your \(service.title). If it does"
            )
            Console.write("not open, go to this address on this machine:\n\n  \(url)\n")
        } launch: { url in
            Browser.open(url)
        }
    }

    private func withoutBrowser() async throws(SignInError) -> Tokens {
        if signIn.service.deviceURL != nil {
            return try await signIn.withDevice { prompt in
                Console.write("On any device go to\n\n  \(TerminalText.line(prompt.url))\n")
                Console.write("and type this code: \(TerminalText.line(prompt.userCode))")
            }
        }
        if signIn.service.showsCode {
            return try await signIn.withCopiedCode { url in
                Console.write("In a browser on any machine go to\n\n  \(url)\n")
                Console.write("allow Oort in, and type the code that it shows here:")
                return Console.readLine()
            }
        }
        let address = "the address in its address bar (http://127.0.0.1... or http://localhost...)"
        return try await signIn.withBrowser { url in
            Console.write("In a browser on any machine go to\n\n  \(url)\n")
            Console.write("and allow Oort in. On this machine that is all. On another one the")
            Console.write("browser then fails to open a page, since Oort is not there: copy")
            Console.write("\(address)")
            Console.write("and paste it here:")
        } paste: { isAnswer in
            while let line = Console.readLine() {
                let line = line.trimmingCharacters(in: .whitespaces)
                if line.isEmpty { continue }
                if isAnswer(line) { return }
                Console.write("That does not belong to this sign-in. Paste all of \(address):")
            }
        }
    }
}

/// The desktop's browser.
enum Browser {
    /// Opens an address; when there is no browser, the address on the terminal must do.
    static func open(_ url: String) {
        // It lives on when this program ends, and a browser that it starts has nothing of it.
        _ = try? RunningProgram(Program("xdg-open", [url], grouping: .session))
    }
}

/// The file of `--token-file`.
enum TokenFile {
    /// Reads it; `-` is standard input.
    ///
    /// - Throws: `Failure` naming the file; never its content.
    static func read(_ path: String) throws(Failure) -> Tokens {
        let data: Data?
        if path == "-" {
            data = try? FileHandle.standardInput.readToEnd() ?? Data()
        } else {
            data = FileManager.default.contents(atPath: MountPoint(path).path)
        }
        guard let data else {
            throw Failure(
                "The token file \(path) cannot be read.",
                advice: "Name a readable file, or - for standard input."
            )
        }
        do throws(SignInError) {
            return try Tokens(tokenFile: [UInt8](data))
        } catch {
            let place = path == "-" ? "on standard input" : path
            let reason = if case .tokenFile(let detail) = error { detail } else { "\(error)" }
            throw Failure(
                "The token file \(place) cannot be used: \(reason).",
                advice: "All but access_token may be left out."
            )
        }
    }
}
