import Foundation
import Logging
import ServiceLifecycle
import Synchronization
import Testing

@testable import oort

/// A service manager's socket.
private final class ManagerSocket: Sendable {
    let address: String
    private let descriptor: Int32

    init(at path: String) throws {
        address = path
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        var target = sockaddr_un()
        target.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &target.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        let result = unsafe withUnsafePointer(to: target) { target in
            unsafe target.withMemoryRebound(to: sockaddr.self, capacity: 1) { target in
                unsafe bind(descriptor, target, size)
            }
        }
        try #require(result == 0)
    }

    deinit { close(descriptor) }

    /// What was said since the last time, without waiting.
    func said() -> [String] {
        var all: [String] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = unsafe recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            guard count >= 0 else { return all }
            all.append(String(decoding: buffer[..<count], as: UTF8.self))
        }
    }
}

@Suite("The service", .timeLimit(.minutes(15)))
struct ServiceTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test("a sign of life is given only while the daemon answers, and the end is announced")
    func watchdog() async throws {
        let socket = try ManagerSocket(at: folder.path + "/n")
        let manager = try #require(
            ServiceManager(environment: [
                "NOTIFY_SOCKET": socket.address, "WATCHDOG_USEC": "30000",
                "WATCHDOG_PID": "\(getpid())",
            ])
        )
        let isWell = Mutex(false)
        let looks = Mutex(0)
        let reports = ServiceReports(manager: manager) {
            looks.withLock { $0 += 1 }
            return isWell.withLock { $0 }
        }
        let group = ServiceGroup(
            configuration: .init(
                services: [reports],
                logger: Logger(label: "test")
            )
        )
        async let running: Void = group.run()
        while looks.withLock({ $0 }) < 5 { await Task.yield() }
        #expect(socket.said() == [])
        isWell.withLock { $0 = true }
        var said: [String] = []
        while said.isEmpty {
            said = socket.said()
            await Task.yield()
        }
        #expect(Set(said) == ["WATCHDOG=1"])
        await group.triggerGracefulShutdown()
        try await running
        #expect(socket.said().last?.hasPrefix("STOPPING=1\n") == true)
    }

    @Test("who waits for another process's signs of life is not given this one's")
    func others() throws {
        let socket = ["NOTIFY_SOCKET": "/run/n", "WATCHDOG_USEC": "30000"]
        func patience(_ more: [String: String]) -> Duration? {
            ServiceManager(environment: socket.merging(more) { $1 })?.patience
        }
        #expect(patience([:]) == .milliseconds(30))
        #expect(patience(["WATCHDOG_PID": "1"]) == nil)
        #expect(patience(["WATCHDOG_USEC": "soon"]) == nil)
        #expect(patience(["WATCHDOG_USEC": "-9"]) == nil)
        #expect(ServiceManager(environment: [:]) == nil)
        #expect(ServiceManager(environment: ["NOTIFY_SOCKET": "vsock:1:2"]) == nil)
    }

    @Test(
        "an address that is too long, or where nobody listens, is passed over",
        arguments: ["/nonexistent/notify", "@nobody", "/" + String(repeating: "x", count: 500)]
    )
    func nobody(address: String) throws {
        let manager = try #require(ServiceManager(environment: ["NOTIFY_SOCKET": address]))
        manager.say("READY=1")
    }

    @Test("the person's own units lie where systemd looks for them")
    func folderOfUnits() {
        let list =
            "/home/a b/.config/systemd/user.control /run/user/1/systemd/user.control "
            + "/run/user/1/systemd/transient /home/a b/.config/systemd/user /etc/systemd/user"
        #expect(UserServices.folder(inSearchPath: list) == "/home/a b/.config/systemd/user")
        #expect(UserServices.folder(inSearchPath: "") == nil)
        #expect(UserServices.folder(inSearchPath: "/etc/systemd/user") == nil)
    }

    @Test("the unit names the program and the folders as systemd reads them")
    func unit() {
        let plain = ServiceUnit(program: "/usr/bin/oort").text
        #expect(plain.contains("\nExecStart=\"/usr/bin/oort\" mount --foreground\n"))
        #expect(!plain.contains("Environment="))
        let odd = ServiceUnit(
            program: "/home/a b/100%/oort",
            environment: ["XDG_STATE_HOME": "/home/a \"b\"/s"]
        ).text
        #expect(odd.contains("\nExecStart=\"/home/a b/100%%/oort\" mount --foreground\n"))
        #expect(odd.contains("\nEnvironment=\"XDG_STATE_HOME=/home/a \\\"b\\\"/s\"\n"))
        let quote = ServiceUnit(program: "/home/o'neil/oort").text
        #expect(quote.contains("\nExecStart=\"/home/o'neil/oort\" mount --foreground\n"))
        let places = ServiceUnit.places([
            "XDG_CACHE_HOME": "/c", "XDG_STATE_HOME": "s", "PATH": "/",
        ])
        #expect(places == ["XDG_CACHE_HOME": "/c"])
    }
}
