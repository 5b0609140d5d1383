import Foundation
import OortModel
import OortSimulators
import OortTransport

/// A demo that runs in another terminal: where it is mounted, and how its clouds are changed.
struct RunningDemo: Sendable {
    /// What a demo leaves in its folder for those that play in it.
    struct Record: Codable, Hashable, Sendable {
        /// The file's name in the demo's folder.
        static let name = "demo.json"
        /// Where the clouds are mounted.
        var mountPoint: String
        /// The simulators' addresses, by the accounts' names.
        var clouds: [String: String]
        /// The folders in which the accounts lie that are not simulated, by their names.
        var folders: [String: String]
    }

    /// The demo's folders.
    let folders: Folders
    /// Where it is mounted, and its clouds.
    let record: Record
    private let wire: CurlClient

    /// The demo of this terminal (`OORT_FOLDER`), or else the only one that this user runs.
    ///
    /// - Throws: `Failure` when there is none, or more than one.
    init() throws(Failure) {
        let own = ProcessInfo.processInfo.environment[Folders.variable]
        let found = (own.map { [$0] } ?? Self.candidates).compactMap(Self.read)
        guard let (folders, record) = found.first else {
            throw Failure(
                "No demo of yours runs.",
                advice: "Start one in another terminal with `oort demo`."
            )
        }
        guard found.count == 1 else {
            throw Failure(
                "More than one demo of yours runs.",
                advice:
                    "Run the line that begins with `source` in that demo's words, and try again."
            )
        }
        self.folders = folders
        self.record = record
        wire = try Wire.make(try Surroundings(folders: folders).settings)
    }

    /// Ends the threads of the network.
    func close() async { await wire.shutdown() }

    /// The mounted folder of an account.
    func folder(_ account: String) -> String { "\(record.mountPoint)/\(account)" }

    /// One request to the control of an account's simulator.
    ///
    /// - Throws: `Failure` when the demo has ended, or the request does not fit the account.
    @discardableResult
    func control(
        _ account: String,
        _ method: String,
        _ path: String,
        _ body: JSON? = nil
    ) async throws(Failure) -> [UInt8] {
        guard let base = record.clouds[account] else {
            let simulated = record.clouds.keys.sorted().joined(separator: ", ")
            guard record.folders[account] == nil else {
                throw Failure(
                    "The demo's \(account) is a server on this machine: its line and its room are "
                        + "real.",
                    advice: "Scenes for it are edit and conflict; all of them are for \(simulated)."
                )
            }
            let all = (Array(record.clouds.keys) + record.folders.keys).sorted()
            throw Failure(
                "The demo has no account \(account).",
                advice: "Its accounts are: \(all.joined(separator: ", "))."
            )
        }
        let request = HTTPRequest(
            method: method,
            url: "\(base)/_oort/\(path)",
            headers: body == nil ? [] : [("Content-Type", "application/json")],
            body: body.map { .bytes($0.bytes) } ?? .none,
            isAuthorized: false,
            answerTimeout: .seconds(20)
        )
        let answer: HTTPResponse
        do throws(TransportError) {
            answer = try await wire.send(request, limit: 64 << 20)
        } catch {
            throw Failure("The demo's clouds do not answer: \(error)", advice: "Start it anew.")
        }
        guard answer.head.status == 200 else {
            throw Failure(
                "The demo's \(account) refuses: \(String(decoding: answer.body, as: UTF8.self))"
            )
        }
        return answer.body
    }

    /// The folders of the demo in whose mount a path lies, if there is one.
    static func folders(holding path: String) -> Folders? {
        let path = MountPoint(path).path
        return candidates.lazy.compactMap(read)
            .first { MountPoint(standardized: $0.1.mountPoint).holds(path) }?.0
    }

    /// Folders of demos in /tmp, where `DemoFolders` makes them.
    private static var candidates: [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/tmp")) ?? []
        return names.filter { $0.hasPrefix(DemoFolders.prefix) }.sorted().map { "/tmp/" + $0 }
    }

    /// A demo of this user's that runs; nil for anything else.
    private static func read(_ path: String) -> (Folders, Record)? {
        var status = stat()
        guard unsafe lstat(path, &status) == 0, status.st_uid == getuid(),
            status.st_mode & S_IFMT == S_IFDIR,
            let data = FileManager.default.contents(atPath: "\(path)/\(Record.name)"),
            let record = try? JSONDecoder().decode(Record.self, from: data)
        else { return nil }
        var environment = ProcessInfo.processInfo.environment
        environment[Folders.variable] = path
        guard let folders = try? Folders(environment: environment),
            InstanceLock.isHeld(path: folders.lockFile)
        else { return nil }
        return (folders, record)
    }
}

extension Folders {
    /// Those of the mount in which a path lies.
    ///
    /// A demo's, or else the person's own; what the environment names wins over either.
    ///
    /// - Throws: `Failure` when no home folder is known.
    init(holding path: String?) throws(Failure) {
        let isNamed = ProcessInfo.processInfo.environment[Self.variable] != nil
        if !isNamed, let path, let demo = RunningDemo.folders(holding: path) {
            self = demo
        } else {
            try self.init()
        }
    }
}
