import Foundation
import OortModel
import ServerTesting
import Testing

@testable import OortFTP

/// vsftpd, which many hosters run: it lists no folder for programs, so no account can be there.
extension FTPTests {
    @Suite("vsftpd", .enabled(if: FTPServer.vsftpd != nil, "vsftpd is not here"))
    struct Vsftpd {
        private func failure(
            _ server: FTPServer,
            _ address: FTPAddress? = nil,
            password: String = FTPServer.password
        ) async -> FTPSignIn.Failure? {
            do throws(FTPSignIn.Failure) {
                _ = try await FTPSignIn.account(
                    at: address ?? server.address(),
                    password: password,
                    settings: server.settings
                )
                return nil
            } catch { return error }
        }

        @Test("it is refused for its listings, once it has let the person in")
        func refused() async throws {
            let server = try await FTPServers.shared.running(.vsftpd)
            #expect(await failure(server)?.reason == .noMachineListings)
            var plain = server.address()
            plain.security = .plain
            #expect(await failure(server, plain)?.reason == .refused)
            var implicit = server.address()
            implicit.security = .implicit
            #expect(await failure(server, implicit) != nil)
        }

        @Test("a wrong password is sent once")
        func oneTry() async throws {
            let server = try await FTPServers.shared.running(.vsftpd)
            let before = server.log.components(separatedBy: "\"PASS ").count
            let failure = await failure(server, password: "wrong")
            #expect(failure?.reason == .refused)
            #expect(failure?.detail.contains("530") == true, "\(failure?.detail ?? "")")
            // What the server wrote first of the next sign-in comes after all of this one's.
            _ = await self.failure(server)
            let after = server.log.components(separatedBy: "\"PASS ").count
            #expect(after == before + 2)
            #expect(server.log.contains("FAIL LOGIN"))
        }

        @Test("content comes where each transfer must go on with the session of its connection")
        func sessions() async throws {
            let server = try await FTPServers.shared.running(.vsftpd)
            let bytes = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 * 7 + $0 >> 9) }
            try Data(bytes).write(to: URL(filePath: server.folder + "/root/file"))
            let line = FTPLine(server.address(), settings: server.settings, name: "vsftpd")
            defer { line.stop() }
            let path = try #require(FTPPath(absolute: Array((server.folder + "/root/file").utf8)))
            // One connection, and a new one for each content.
            for _ in 0..<3 {
                let read = try await line.run { handle, cancellation throws(FTPFailure) in
                    var read: [UInt8] = []
                    try unsafe handle.retrieve(
                        path,
                        from: 0,
                        password: FTPServer.password,
                        cancellation
                    ) { part in
                        unsafe read.append(contentsOf: part)
                        return part.count
                    }
                    return read
                }
                #expect(read == bytes)
            }
        }
    }
}
