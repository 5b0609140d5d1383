import FlyingFox
import FlyingSocks
import Foundation

/// Asks the running mount through its control socket.
struct ControlClient: Sendable {
    private let folders: Folders

    init(folders: Folders) { self.folders = folders }

    /// Whether a mount runs for this user's state.
    var isMountRunning: Bool { InstanceLock.isHeld(path: folders.lockFile) }

    /// What `oort status` shows.
    func status() async throws(Failure) -> StatusReport {
        try await ask("GET", "/status", Nothing(), answer: StatusReport.self)
    }

    /// Asks for an orderly stop; the mount answers before it stops.
    ///
    /// - Returns: where it was mounted.
    func unmount(_ mountPoint: String?) async throws(Failure) -> String {
        let answer = try await ask(
            "POST",
            "/unmount",
            UnmountRequest(mountPoint: mountPoint),
            answer: UnmountRequest.self
        )
        return answer.mountPoint ?? ""
    }

    /// The paths of inodes, by their numbers.
    func paths(of inodes: [UInt64]) async throws(Failure) -> [String: String] {
        try await ask(
            "POST",
            "/paths",
            PathsRequest(inodes: inodes),
            answer: PathsAnswer.self
        ).paths
    }

    /// The conflicts that are not ended, without their differences; only those of a path where one is named.
    func conflicts(
        _ wish: ConflictsRequest = ConflictsRequest()
    ) async throws(Failure) -> [ConflictReport] {
        wish.path == nil
            ? try await ask("GET", "/conflicts", Nothing(), answer: [ConflictReport].self)
            : try await ask("POST", "/conflicts", wish, answer: [ConflictReport].self)
    }

    /// Carries out a person's choice between two versions, and ends their conflict.
    ///
    /// By the mount itself, as any program does: so all that holds for files holds for this.
    ///
    /// - Returns: what was done, in a sentence.
    /// - Throws: `Failure`; both files are as they were then.
    func resolve(
        _ conflict: ConflictReport,
        keeping keep: ResolveCommand.Choice
    ) async throws(Failure) -> String {
        let choice = ConflictChoice(id: conflict.id, keep: keep)
        _ = try await ask("POST", "/conflicts/choice", choice, answer: ConflictChoice.self)
        try await BlockingWork.run { () throws(Failure) in try keep.apply(to: conflict) }
        try await endConflict(conflict.id)
        switch keep {
        case .mine: return "\(conflict.theirs.path) is your version now."
        case .theirs: return "\(conflict.theirs.path) stays; your copy is deleted."
        case .both: return "Both stay: \(conflict.theirs.path) and \(conflict.mine.path)"
        }
    }

    /// Ends a conflict whose files both stay.
    func endConflict(_ id: UInt64) async throws(Failure) {
        _ = try await ask(
            "POST",
            "/conflicts/end",
            EndConflictRequest(id: id),
            answer: EndConflictRequest.self
        )
    }

    /// Sends nothing for a time.
    func pause(_ wish: PauseRequest) async throws(Failure) -> PaceReport {
        try await ask("POST", "/pause", wish, answer: PaceReport.self)
    }

    /// Goes on sending.
    func resume(_ wish: ResumeRequest) async throws(Failure) -> PaceReport {
        try await ask("POST", "/resume", wish, answer: PaceReport.self)
    }

    /// Sets or lifts limits; without a wish it only reports them.
    func limit(_ wish: LimitRequest) async throws(Failure) -> PaceReport {
        try await ask("POST", "/limit", wish, answer: PaceReport.self)
    }

    /// The accounts that the mount's catalog has, on the list of accounts or not.
    func keptAccounts() async throws(Failure) -> [KeptAccount] {
        try await ask("GET", "/accounts", Nothing(), answer: [KeptAccount].self)
    }

    /// Notifies the mount of an account that was signed in.
    func accountAdded(_ name: String) async throws(Failure) {
        _ = try await ask(
            "POST",
            "/accounts/added",
            AccountRequest(name: name),
            answer: AccountRequest.self
        )
    }

    /// Notifies the mount of an account that is being signed out, and of how many items may be given up
    /// that its cloud does not have.
    func accountRemoved(_ name: String, givingUp most: Int) async throws(Failure) {
        _ = try await ask(
            "POST",
            "/accounts/removed",
            AccountRemovalRequest(name: name, givenUp: most),
            answer: AccountRemovalRequest.self
        )
    }

    /// Waits for the cloud, telling how it goes.
    ///
    /// - Returns: the last word.
    func sync(
        _ request: SyncRequest,
        progress: @escaping @Sendable (SyncProgress) -> Void
    ) async throws(Failure) -> SyncProgress {
        let cut = Failure(
            "The mount stopped before the cloud had everything.",
            advice: "What is missing is kept; mount again: oort mount"
        )
        // The mount ends it in time; this is for one that hangs.
        let limit = request.timeoutSeconds.map { Duration.seconds($0 + 15) }
        let last = try await lines("/sync", request, within: limit, each: progress)
        guard let last, last.state != .waiting else { throw cut }
        return last
    }

    /// Finds items; `each` gets the results as they arrive, and the end.
    func search(
        _ request: SearchRequest,
        each: @escaping @Sendable (SearchLine) -> Void
    ) async throws(Failure) {
        let last = try await lines("/search", request, within: nil, each: each)
        guard last?.end != nil else {
            throw Failure(
                "The mount stopped before the search was over.",
                advice: "Mount again: oort mount"
            )
        }
    }

    /// Hears of changes in the mount until that ends; `each` may take its time.
    func watch(
        _ request: WatchRequest,
        each: @escaping @Sendable (WatchEvent) -> Void
    ) async throws(Failure) {
        _ = try await lines("/watch", request, within: nil, each: each)
    }

    /// Asks for an answer of many lines.
    ///
    /// - Returns: the last line; nil where there was none.
    private func lines<Line: Decodable & Sendable>(
        _ path: String,
        _ request: some Encodable,
        within limit: Duration?,
        each: @escaping @Sendable (Line) -> Void
    ) async throws(Failure) -> Line? {
        let body: Data
        do { body = try ControlCoding.encode(request) } catch { throw translate(error) }
        return try await within(limit) { try await lines(path, body, each: each) }
    }

    private func lines<Line: Decodable>(
        _ path: String,
        _ body: Data,
        each: @Sendable (Line) -> Void
    ) async throws(Failure) -> Line? {
        do {
            var last: Line?
            var reader = try await whenListening {
                try await ControlLineReader.ask("POST", path, body: body, at: try address())
            }
            let refusal = try await reader.read { line in
                let value = try ControlCoding.decode(Line.self, from: line)
                last = value
                each(value)
            }
            if let refusal {
                throw try ControlCoding.decode(ControlFailure.self, from: refusal).failure
            }
            return last
        } catch {
            throw translate(error)
        }
    }

    /// One request and its answer; a mount that hangs is waited for as long as `limit`.
    func ask<Answer: Decodable & Sendable>(
        _ method: String,
        _ path: String,
        _ body: some Encodable,
        answer: Answer.Type,
        within limit: Duration = .seconds(60)
    ) async throws(Failure) -> Answer {
        let message: HTTPRequest
        do {
            message = try self.message(method, path, body)
        } catch {
            throw translate(error)
        }
        return try await within(limit) { try await send(message, answer: answer) }
    }

    private func send<Answer: Decodable>(
        _ message: HTTPRequest,
        answer: Answer.Type
    ) async throws(Failure) -> Answer {
        do {
            let response = try await response(to: message)
            let data = try await response.bodyData
            guard response.statusCode == .ok else {
                throw try ControlCoding.decode(ControlFailure.self, from: data).failure
            }
            return try ControlCoding.decode(Answer.self, from: data)
        } catch {
            throw translate(error)
        }
    }

    /// Runs an exchange that a hanging mount must not hold up for ever.
    private func within<Answer: Sendable>(
        _ limit: Duration?,
        _ exchange: @escaping @Sendable () async throws -> Answer
    ) async throws(Failure) -> Answer {
        do {
            return try await withThrowingTaskGroup { group in
                group.addTask { try await exchange() }
                if let limit {
                    group.addTask {
                        try await Task.sleep(for: limit)
                        throw Self.silence
                    }
                }
                defer { group.cancelAll() }
                guard let answer = try await group.next() else { throw Self.silence }
                return answer
            }
        } catch {
            throw translate(error)
        }
    }

    private func message(
        _ method: String,
        _ path: String,
        _ body: some Encodable
    ) throws -> HTTPRequest {
        let data = method == "GET" ? Data() : try ControlCoding.encode(body)
        return HTTPRequest(
            method: HTTPMethod(method),
            version: .http11,
            path: path,
            query: [],
            headers: [
                .host: "oort", .contentType: "application/json",
                .contentLength: "\(data.count)", .connection: "close",
            ],
            body: data
        )
    }

    private func response(to message: HTTPRequest) async throws -> HTTPResponse {
        try await whenListening {
            var client = HTTPClient()
            return try await client.sendHTTPRequest(message, to: try address())
        }
    }

    /// Sends a request as soon as the mount listens.
    ///
    /// A mount holds its lock, and shows its folders, some moments before it listens; one that does not
    /// after ten seconds will not.
    private func whenListening<Answer: ~Copyable>(
        _ ask: () async throws -> Answer
    ) async throws -> Answer {
        let limit = ContinuousClock.now + .seconds(10)
        while true {
            do {
                return try await ask()
            } catch SocketError.failed(_, let number, _)
                where [ENOENT, ECONNREFUSED].contains(number) && ContinuousClock.now < limit
            {
                try await Task.sleep(for: .milliseconds(20))
            }
        }
    }

    private func address() throws(Failure) -> sockaddr_un {
        guard isMountRunning else { throw Self.notMounted }
        guard folders.socket.utf8.count < 108 else {
            throw Failure(
                "The control socket's path is too long for Linux: \(folders.socket)",
                advice: "Set XDG_RUNTIME_DIR to a shorter path, as for the mount."
            )
        }
        return .unix(path: folders.socket)
    }

    private func translate(_ error: any Error) -> Failure {
        if let failure = error as? Failure { return failure }
        return isMountRunning ? Self.silence : Self.notMounted
    }

    private static let notMounted = Failure(
        "No mount is running.",
        advice: "Start one: oort mount"
    )
    private static let silence = Failure(
        "The running mount does not answer.",
        advice: "See its log (oort.log in the state folder), or start it anew: "
            + "oort unmount, then oort mount"
    )

    struct Nothing: Encodable {}
}
