import FlyingFox
import FlyingSocks
import Foundation
import OortModel
import Synchronization
import Testing

@testable import OortTransport

@Suite("libcurl client")
struct CurlClientTests {
    @Test("a small request and its answer go over whole")
    func smallRequest() async throws {
        try await withServer { request in
            let body = try await request.bodyData
            return FlyingFox.HTTPResponse(
                statusCode: .created,
                headers: [HTTPHeader("X-Method"): request.method.rawValue],
                body: body
            )
        } body: { base, client in
            var request = OortTransport.HTTPRequest(method: "POST", url: base + "/echo?a=b")
            request.body = .bytes(Array("hello".utf8))
            let answer = try await client.send(request)
            #expect(answer.head.status == 201)
            #expect(answer.head.header("x-method") == "POST")
            #expect(answer.head.httpVersion == "1.1")
            #expect(answer.body == Array("hello".utf8))
        }
    }

    @Test("what was shut down has left no thread to be joined, however busy the machine is")
    func endedClients() async throws {
        let load = (0..<4).map { _ in
            Task.detached {
                while !Task.isCancelled { await Task.yield() }
            }
        }
        defer { load.forEach { $0.cancel() } }
        let rounds = ProcessInfo.processInfo.environment["OORT_ROUNDS"].flatMap(Int.init) ?? 300
        for _ in 0..<rounds {
            let loop = try CurlLoop(name: "ends", settings: CurlClient.Settings())
            #expect(loop.isToBeJoined)
            await loop.stopAndWait()
            #expect(!loop.isToBeJoined)
        }
    }

    @Test("a thread is joined when the last of its own data is freed")
    func joinedThreads() throws {
        var key = pthread_key_t()
        unsafe pthread_key_create(&key) { pointer in
            guard let pointer = unsafe pointer else { return }
            usleep(20_000)
            let data = unsafe Unmanaged<OwnData>.fromOpaque(pointer).takeRetainedValue()
            data.isFreed.store(true, ordering: .releasing)
        }
        let data = OwnData()
        let thread = try JoinableThread(name: "ends") { [key] in
            unsafe pthread_setspecific(key, Unmanaged.passRetained(data).toOpaque())
        }
        thread.join()
        let isFreed = data.isFreed.load(ordering: .acquiring)
        #expect(isFreed)
        thread.join()
    }
}

/// What a thread keeps for itself, as OpenSSL does.
private final class OwnData: Sendable {
    let isFreed = Atomic(false)
}
