import FlyingFox
import FlyingSocks
import Foundation
import OortTransport
import Synchronization

/// The port to which the browser comes back: serves one page and takes one answer.
final class RedirectListener: Sendable {
    private struct State {
        var answer: Result<String, SignInError>?
        var waiter: CheckedContinuation<Result<String, SignInError>, Never>?
        /// Where the browser is sent that opens the way in; nil before, and after the first one.
        var target: String?
    }

    /// The address that the service is asked to send the browser to.
    let url: String
    private let port: UInt16
    private let server: HTTPServer
    /// Runs the server; ended by `close`.
    private let running: Task<Void, Never>
    private let inbox: Inbox

    private init(
        url: String,
        port: UInt16,
        server: HTTPServer,
        running: Task<Void, Never>,
        inbox: Inbox
    ) {
        self.url = url
        self.port = port
        self.server = server
        self.running = running
        self.inbox = inbox
    }

    /// Listens on the loopback interface only.
    static func listen(
        _ redirect: OAuthService.Redirect,
        state: String
    ) async throws(SignInError) -> RedirectListener {
        switch redirect {
        case .anyPort(let host, let path):
            guard let one = await listen(port: 0, host: host, path: path, state: state) else {
                throw .portsTaken([])
            }
            return one
        case .fixedPorts(let ports, let host, let path):
            for port in ports {
                if let one = await listen(port: port, host: host, path: path, state: state) {
                    return one
                }
            }
            throw .portsTaken(ports)
        }
    }

    private static func listen(
        port: UInt16,
        host: String,
        path: String,
        state: String
    ) async -> RedirectListener? {
        guard let address = try? sockaddr_in.inet(ip4: "127.0.0.1", port: port) else { return nil }
        let inbox = Inbox(state: state, path: path.isEmpty ? "/" : path)
        let server = HTTPServer(address: address, timeout: 10, logger: .disabled)
        await server.appendRoute("*") { request in inbox.page(for: request) }
        // Ends when the server listens, or when it stopped because the port is taken.
        let listening = Task { (try? await server.waitUntilListening(timeout: 10)) != nil }
        let running = Task {
            _ = try? await server.run()
            listening.cancel()
        }
        let isListening = await listening.value
        guard isListening, case .ip4(_, let bound)? = await server.listeningAddress else {
            running.cancel()
            return nil
        }
        return RedirectListener(
            url: "http://\(host):\(bound)\(path)",
            port: bound,
            server: server,
            running: running,
            inbox: inbox
        )
    }

    /// An address of this machine that leads the first browser that opens it to `target`.
    ///
    /// It may be seen by other users, as the arguments of a program are: it says nothing, and opens
    /// nothing a second time.
    func entrance(to target: String) -> String {
        inbox.lead(to: target)
        return "http://127.0.0.1:\(port)\(inbox.entrance)"
    }

    /// The code that the browser brings.
    func code(within limit: Duration, time: Timekeeper) async throws(SignInError) -> String {
        let inbox = inbox
        let alarm = Task {
            if (try? await time.sleep(limit)) != nil { inbox.deliver(.failure(.timedOut)) }
        }
        defer { alarm.cancel() }
        return try await withTaskCancellationHandler {
            await inbox.answer()
        } onCancel: {
            inbox.deliver(.failure(.transport(.cancelled)))
        }.get()
    }

    /// Has a person paste the address to which a browser elsewhere was sent.
    func read(_ paste: @escaping @Sendable (_ isAnswer: (String) -> Bool) -> Void) {
        let inbox = inbox
        Thread.detachNewThread {
            paste { inbox.take(address: $0) }
            inbox.deliver(.failure(.nothingPasted))
        }
    }

    /// Frees the port, once the page that is on its way has gone out.
    func close() async {
        await server.stop(timeout: 2)
        running.cancel()
        await running.value
    }

    /// The first answer that counts, and who waits for it.
    private final class Inbox: Sendable {
        private let expectedState: String
        private let path: String
        /// The path of the way in.
        let entrance = "/open/\(RandomText.make())"
        private let state = Mutex(State())

        init(state: String, path: String) {
            expectedState = state
            self.path = path
        }

        func lead(to target: String) { state.withLock { $0.target = target } }

        func answer() async -> Result<String, SignInError> {
            await withCheckedContinuation { continuation in
                let answer = state.withLock { state in
                    if state.answer == nil { state.waiter = continuation }
                    return state.answer
                }
                if let answer { continuation.resume(returning: answer) }
            }
        }

        func deliver(_ answer: Result<String, SignInError>) {
            let waiter = state.withLock {
                state -> CheckedContinuation<Result<String, SignInError>, Never>? in
                guard state.answer == nil else { return nil }
                state.answer = answer
                defer { state.waiter = nil }
                return state.waiter
            }
            waiter?.resume(returning: answer)
        }

        func page(for request: FlyingFox.HTTPRequest) -> FlyingFox.HTTPResponse {
            if request.method == .GET, request.path == entrance { return enter() }
            guard request.method == .GET, request.path == path else {
                return page(.notFound, "There is nothing here.")
            }
            // Any page of the web can have a browser ask for this: the sign-in goes on.
            guard let answer = take({ request.query[$0] }) else {
                return page(
                    .badRequest,
                    "This answer belongs to another sign-in. Please start again."
                )
            }
            switch answer {
            case .success:
                return page(.ok, "Oort may use your files now. You can close this window.")
            case .failure(.denied):
                return page(
                    .ok,
                    "Access was denied. Nothing was changed. You can close this window."
                )
            case .failure:
                return page(
                    .badRequest,
                    "The service refused the sign-in. Where you began it, Oort says why."
                )
            }
        }

        /// Takes an address to which a browser was sent; says whether it answers this sign-in.
        func take(address: String) -> Bool {
            let items = URLComponents(string: address)?.queryItems ?? []
            return take { name in items.first { $0.name == name }?.value } != nil
        }

        /// Takes the service's answer by its fields; nil for one to another sign-in.
        private func take(_ field: (String) -> String?) -> Result<String, SignInError>? {
            guard field("state") == expectedState else { return nil }
            let answer: Result<String, SignInError>
            if let code = field("code"), !code.isEmpty {
                answer = .success(code)
            } else {
                let code = field("error") ?? "no code"
                let refusal = OAuthRefusal(code: code, text: field("error_description") ?? "")
                answer = .failure(code == "access_denied" ? .denied : .refused(refusal))
            }
            deliver(answer)
            return answer
        }

        private func enter() -> FlyingFox.HTTPResponse {
            let target = state.withLock { state in
                defer { state.target = nil }
                return state.target
            }
            guard let target else {
                return page(
                    .gone,
                    """
                    This address leads to the sign-in once only, and it was opened before: by this \
                    browser, or by somebody else who uses this computer. If it was not you, end \
                    oort login in the terminal (Ctrl-C) and start again.
                    """
                )
            }
            var response = page(HTTPStatusCode(302, phrase: "Found"), "The sign-in is elsewhere.")
            response.headers[HTTPHeader("Location")] = target
            return response
        }

        /// A page of fixed text: nothing that came by the URL is shown.
        private func page(
            _ status: HTTPStatusCode,
            _ text: String
        ) -> FlyingFox.HTTPResponse {
            let html = """
                <!doctype html><html lang="en"><meta charset="utf-8"><title>Oort</title>
                <body style="font: 1.2em sans-serif; margin: 4em auto; max-width: 30em">
                <p>\(text)</p></body></html>
                """
            return FlyingFox.HTTPResponse(
                statusCode: status,
                headers: [
                    .contentType: "text/html; charset=utf-8", .connection: "close",
                    HTTPHeader("Cache-Control"): "no-store",
                    HTTPHeader("Referrer-Policy"): "no-referrer",
                ],
                body: Data(html.utf8)
            )
        }
    }
}
