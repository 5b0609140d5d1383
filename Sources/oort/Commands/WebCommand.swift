import ArgumentParser
import Foundation
import OortSignIn
import OortTransport

/// `oort web`.
struct WebCommand: AsyncParsableCommand, StopsOrderly {
    static let configuration = CommandConfiguration(
        commandName: "web",
        abstract: "Show your clouds on a page in the browser of this machine, until Ctrl-C.",
        discussion: """
            Accounts, signing in and out, and room, transfers, search, folders with previews, what is kept here, trash, \
            versions, conflicts side by side, settings and log. The address that is printed opens the page \
            once, in one browser, within ten minutes; only programs of yours on this machine reach it.
            """
    )

    @Flag(help: "Open it in the browser.")
    var open = false

    @Option(
        help: ArgumentHelp(
            "The port on 127.0.0.1 (default: a free one).",
            valueName: "number"
        ),
        transform: { text in
            guard let port = UInt16(text), port > 0 else {
                throw ValidationError("--port must be from 1 to 65535.")
            }
            return port
        }
    )
    var port: UInt16?

    func run() async throws {
        // It is given passwords. For a debugger there is a way around.
        if ProcessInfo.processInfo.environment["OORT_DEBUGGABLE"] == nil { PrivateMemory.begin() }
        let folders = try Folders()
        // Says so where no mount runs.
        _ = try await ControlClient(folders: folders).status()
        let server = try SiteServer(port: port ?? 0)
        let admission = SiteAdmission()
        let address = "http://127.0.0.1:\(server.port)/enter?token=\(admission.makeToken())"
        let opener = open ? try SiteOpener(address: address, home: folders.home) : nil
        Signals.onStop {
            opener?.remove()
            Outcome.end(with: .success)
        }
        let site = Site(
            folders: folders,
            port: server.port,
            admission: admission,
            entered: { opener?.remove() }
        )
        Console.write(
            """
            The page is open once, in one browser, within ten minutes:
              \(address)
            Ctrl-C ends it.
            """
        )
        opener?.open()
        try await server.run { await site.answer($0) }
    }
}

/// Opens the page in the browser without its token among the arguments of a program, which every user
/// of the machine can read: by a file that leads there.
struct SiteOpener: Sendable {
    private let path: String

    /// Makes the file, for this user alone.
    ///
    /// It lies in the home folder and its name is not hidden: a browser in a sandbox (snap) reads no other.
    /// It is deleted when the browser has come, or at the end.
    init(address: String, home: String) throws(Failure) {
        path = "\(home)/oort-web-\(String(UInt64.random(in: .min ... .max), radix: 36)).html"
        let page: HTML = """
            <!doctype html>
            <html lang="en"><head><meta charset="utf-8"><title>Oort</title>
            <meta http-equiv="refresh" content="0;url=\(address)"></head>
            <body><p><a href="\(address)">Go on to the page of oort web</a></p></body></html>

            """
        do { try PrivateFile.make(path, page.text.utf8) } catch {
            throw Failure(
                "\(TerminalText.line(path)) cannot be made, by which the browser would be opened: \(error).",
                advice: "Leave --open out, and open the address that is printed."
            )
        }
    }

    /// Hands it to the desktop.
    func open() { Browser.open("file://" + PercentCoding.encodedPath(path)) }

    /// Takes the file away.
    func remove() { _ = unsafe unlink(path) }
}
