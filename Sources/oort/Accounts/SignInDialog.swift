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
    /// - Returns: the tokens and the registration that they belong to.
    /// - Throws: `Failure` in words for the person.
    func run(opensBrowser: Bool) async throws(Failure) -> Credentials {
        do throws(SignInError) {
            let tokens = opensBrowser ? try await withBrowser() : try await withoutBrowser()
            return Credentials(client: signIn.client, tokens: tokens)
        } catch {
            throw failure(error)
        }
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

    private func failure(_ error: SignInError) -> Failure {
        let guide = service.oauth?.registration
        let again = "Try again: oort login \(service.name)"
        let advice: String? =
            switch error {
            case .denied: again
            case .nothingPasted:
                "\(again), and paste it when you are asked; or, without a terminal, sign in with "
                    + "tokens: oort login \(service.name) --token-file FILE"
            case .timedOut:
                guide.map { guide in
                    (["If the browser showed an error:"] + guide.browserErrors.map { "  \($0)" })
                        .joined(separator: "\n") + "\n" + again
                } ?? again
            case .refused(let refusal):
                guide?.advice(on: "\(refusal.code) \(refusal.text)")
                    ?? "Check the client id and what README.md says of \(service.title)'s registration."
            case .portsTaken: "End that program and try again."
            case .unsupported: "Use another way: a browser, or --token-file FILE."
            case .transport:
                "Check the network, HTTPS_PROXY and ca_file in the settings, and try again."
            case .malformedAnswer, .tokenFile, .store: nil
            }
        return Failure("\(service.title): \(TerminalText.line("\(error)")).", advice: advice)
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
