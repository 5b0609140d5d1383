import FlyingFox
import FlyingSocks
import OortTransport

/// Runs `body` with a FlyingFox server on a loopback port that the kernel chose, and a client.
func withServer(
    settings: CurlClient.Settings = .init(),
    _ answer: @escaping @Sendable (FlyingFox.HTTPRequest) async throws -> FlyingFox.HTTPResponse,
    body: (_ base: String, _ client: CurlClient) async throws -> Void
) async throws {
    let server = HTTPServer(address: try .inet(ip4: "127.0.0.1", port: 0))
    await server.appendRoute("*") { try await answer($0) }
    let running = Task { try await server.run() }
    try await server.waitUntilListening(timeout: 120)
    guard case .ip4(_, let port) = await server.listeningAddress else {
        throw TransportError.unreachable("the test server has no port")
    }
    let client = try CurlClient(settings: settings)
    do {
        try await body("http://127.0.0.1:\(port)", client)
    } catch {
        await client.shutdown()
        await server.stop(timeout: 0)
        running.cancel()
        throw error
    }
    await client.shutdown()
    await server.stop(timeout: 0)
    running.cancel()
    _ = await running.result
}
