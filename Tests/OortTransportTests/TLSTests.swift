import Foundation
import MountTesting
import OortModel
import Testing

@testable import OortTransport

@Suite("TLS, HTTP/2 and proxies")
struct TLSTests {
    private static let nginx = SupportProcess.find("/usr/sbin/nginx", "/usr/local/sbin/nginx")

    @Test(
        "small calls share one HTTP/2 connection, bodies whole; bulk goes over HTTP/1.1",
        .enabled(if: nginx != nil, "nginx is not installed")
    )
    func http2() async throws {
        try await withCertificates { folder in
            var settings = CurlClient.Settings()
            settings.caFile = folder + "/ca.pem"
            try await withWire(settings: settings) { port, client in
                try await withNginx(folder: folder, upstream: port, client: client) { base in
                    _ = try await client.send(request(base + "/sent", nil))
                    // Bulk first and between: it must not end the multiplexing.
                    let bulk = try await client.send(request(base + "/hash", 3 << 20))
                    #expect(bulk.head.httpVersion == "1.1")
                    let connections = try await withThrowingTaskGroup(of: String?.self) { group in
                        for number in 0..<60 {
                            let size = number * 1111 % (64 << 10)
                            let asked = request(base + "/hash", size)
                            group.addTask {
                                let answer = try await client.send(asked)
                                #expect(answer.head.httpVersion == "2")
                                let text = String(decoding: answer.body, as: UTF8.self)
                                #expect(text.hasPrefix("\(size) "))
                                return answer.head.header("X-Connection")
                            }
                        }
                        return try await group.reduce(into: Set<String?>()) { $0.insert($1) }
                    }
                    #expect(connections.count == 1)
                    let large = try await client.stream(request(base + "/bytes?\(16 << 20)", nil))
                    #expect(large.head.httpVersion == "2")
                    var total = 0
                    while let part = try await large.body.next() { total += part.count }
                    #expect(total == 16 << 20)
                }
            }
        }
    }

    private func request(_ url: String, _ size: Int?) -> OortTransport.HTTPRequest {
        var request = OortTransport.HTTPRequest(method: "GET", url: url)
        if let size {
            request.method = "POST"
            request.body = .bytes([UInt8](repeating: 7, count: size))
            request.weight = size > 1 << 20 ? .bulk : .small
        }
        return request
    }

    private func withNginx(
        folder: String,
        upstream: String,
        client: CurlClient,
        _ body: (_ base: String) async throws -> Void
    ) async throws {
        let place = try HeldPort()
        defer { withExtendedLifetime(place) {} }
        let port = place.number
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map { "\($0)_temp_path \(folder)/\($0);" }.joined(separator: " ")
        let configuration = """
            daemon off; master_process off; pid \(folder)/pid; error_log \(folder)/log;
            events { worker_connections 512; }
            http { access_log off; client_max_body_size 0; \(temporary)
              server { listen 127.0.0.1:\(port) ssl http2;
                ssl_certificate \(folder)/cert.pem; ssl_certificate_key \(folder)/key.pem;
                location / { proxy_pass http://127.0.0.1:\(upstream);
                  add_header X-Connection $connection always; } } }
            """
        try configuration.write(toFile: folder + "/conf", atomically: true, encoding: .utf8)
        let nginx = try SupportProcess(
            Self.nginx ?? "",
            ["-p", folder, "-c", folder + "/conf", "-e", folder + "/log"]
        )
        try nginx.startSilently()
        let base = "https://127.0.0.1:\(port)"
        let result: Result<Void, any Error>
        do {
            // It listens soon; a connection that is refused is retried.
            _ = try await RetryingClient(client).send(request(base + "/sent", nil))
            try await body(base)
            result = .success(())
        } catch {
            result = .failure(error)
        }
        await nginx.stop()
        try result.get()
    }

    @Test("a certificate that nobody vouches for is refused, one of the CA file's is not")
    func certificates() async throws {
        try await withCertificates { folder in
            let arguments = [folder + "/cert.pem", folder + "/key.pem", "--tls"]
            try await withWire(arguments: arguments) { port, client in
                for host in ["127.0.0.1", "localhost"] {
                    await #expect {
                        try await client.send(request("https://\(host):\(port)/sent", nil))
                    } throws: { isUntrusted($0) }
                }
                let trusting = try CurlClient(settings: .init(caFile: folder + "/ca.pem"))
                let answer = try await trusting.send(
                    request("https://localhost:\(port)/sent", nil)
                )
                #expect(answer.head.status == 200)
                await trusting.shutdown()
            }
        }
    }

    private func isUntrusted(_ error: any Error) -> Bool {
        guard case TransportError.untrusted? = error as? TransportError else { return false }
        return true
    }

    @Test("a proxy that inspects TLS works with its CA, and is refused without")
    func proxy() async throws {
        try await withCertificates { folder in
            let arguments = [folder + "/cert.pem", folder + "/key.pem"]
            try await withWire(arguments: arguments) { port, _ in
                var settings = CurlClient.Settings(caFile: folder + "/ca.pem")
                settings.proxy = "http://127.0.0.1:\(port)"
                let client = try CurlClient(settings: settings)
                let answer = try await client.send(request("https://cloud.test/hash", 100_000))
                #expect(answer.head.header("X-Via") == "cloud.test:443")
                #expect(answer.head.header("X-Proxy") == nil)
                #expect(String(decoding: answer.body, as: UTF8.self).hasPrefix("100000 "))
                await client.shutdown()
                settings.caFile = nil
                let wary = try CurlClient(settings: settings)
                await #expect {
                    try await wary.send(request("https://cloud.test/sent", nil))
                } throws: { isUntrusted($0) }
                await wary.shutdown()
            }
        }
    }

    @Test("HTTPS_PROXY, NO_PROXY and SSL_CERT_FILE of the environment are obeyed")
    func environment() async throws {
        try await withCertificates { folder in
            let arguments = [folder + "/cert.pem", folder + "/key.pem"]
            try await withWire(arguments: arguments) { proxy, _ in
                try await withWire(arguments: arguments + ["--tls"]) { direct, _ in
                    await #expect(processExitsWith: .success) {
                        [
                            folder = folder as String, proxy = proxy as String,
                            direct = direct as String
                        ] in
                        unsafe setenv("SSL_CERT_FILE", folder + "/ca.pem", 1)
                        unsafe setenv("HTTPS_PROXY", "http://127.0.0.1:\(proxy)", 1)
                        unsafe unsetenv("https_proxy")
                        unsafe unsetenv("no_proxy")
                        unsafe setenv("NO_PROXY", "localhost", 1)
                        let client = try CurlClient()
                        let through = try await client.send(
                            OortTransport.HTTPRequest(
                                method: "GET",
                                url: "https://cloud.test/sent"
                            )
                        )
                        #expect(through.head.header("X-Via") == "cloud.test:443")
                        let past = try await client.send(
                            OortTransport.HTTPRequest(
                                method: "GET",
                                url: "https://localhost:\(direct)/sent"
                            )
                        )
                        #expect(past.head.header("X-Via") == "")
                        await client.shutdown()
                    }
                }
            }
        }
    }
}
