import Foundation
import OortModel
import Synchronization

/// A store of S3's kind with one bucket, by path: `/BUCKET/KEY`.
///
/// Signatures, digests and conditions are looked at as AWS does; keys come in the order of their bytes. The
/// account's access token is the access key's id, its refresh token the secret key. `S3Tree` says how a
/// bucket lies in the tree.
public final class S3Simulator: SimulatedService {
    /// How the store behaves; may be changed at any time.
    public struct Habits: Sendable, Hashable {
        /// Whether what is deleted and replaced stays as a version.
        public var keepsVersions = true
        /// The region that signatures must be for.
        public var region = "us-east-1"
        /// How far the store's clock is ahead of this machine's.
        public var clockOffsetSeconds: Int64 = 0
        /// The keys may not list, and so hear 403 of what is not there.
        public var hidesAbsence = false
        /// New objects are encrypted, so that their ETags say nothing of their bytes.
        public var encrypts = false
        /// So many pages of listings have no entry, though more follow.
        public var emptyPages = 0
        /// So many writes with a condition are refused for another one at the same time.
        public var conflicts = 0
        /// So many copies and ends of uploads are answered with an error in a 200; nothing is done.
        public var errorsInSuccess = 0

        /// A store on a good day.
        public init() {}
    }

    /// An upload in parts.
    struct Upload: Sendable {
        struct Part: Sendable {
            var content: SimulatedContent
            var time: Timestamp
        }

        var key: String
        var head: S3ObjectHead
        var begun: Timestamp
        var parts: [Int: Part] = [:]
    }

    struct State: Sendable {
        var habits = Habits()
        var uploads: [String: Upload] = [:]
        /// The answers to ends of uploads, which are repeated when asked for again.
        var completed: [String: SimulatorAnswer] = [:]
        var lastUpload = 0
        var lastRequest = 0
        /// Tokens of listings from before are not known any more.
        var tokenGeneration = 0
        var index: S3Index?
    }

    public let name = "s3"
    public let hosts = [host]
    public let account: SimulatedAccount
    let state = Mutex(State())

    /// The store's name.
    public static let host = "s3.example.org"
    /// The one bucket.
    public static let bucket = "ada-files"

    /// An empty bucket.
    public init(seed: UInt64 = 1) {
        let rules = SimulatedTreeRules(
            comparison: .exact,
            keepsPathLog: false,
            makeID: { _, random in "item-" + random.hex(16) },
            makeRevisionID: { random in
                random.text(
                    32,
                    of: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._"
                )
            }
        )
        let tree = SimulatedTree(rules: rules, rootID: "bucket", rootName: "", seed: seed)
        account = SimulatedAccount(tree: tree, totalBytes: nil)
        // Access keys do not end.
        account.tokens.lifetime = 10 * 365 * 86400
    }

    /// The account that the demo and the tests begin with.
    public static func sample() -> S3Simulator {
        let simulator = S3Simulator()
        simulator.account.withTree { tree in
            SampleAccount(
                allowsDuplicates: false,
                allowsSlashes: false,
                allowsShortcuts: false,
                nativeName: { _, _ in nil }
            ).fill(&tree)
        }
        return simulator
    }

    /// How the store behaves.
    public var habits: Habits {
        get { state.withLock { $0.habits } }
        set { state.withLock { $0.habits = newValue } }
    }

    /// `{"versions", "region", "clock_offset", "hides_absence", "encrypts", "empty_pages", "conflicts",
    /// "errors_in_success"}`; what is left out is as usual.
    public func set(habits json: JSON) -> Bool {
        guard json.fields != nil else { return false }
        var habits = Habits()
        habits.keepsVersions = json["versions"]?.bool ?? habits.keepsVersions
        habits.region = json["region"]?.text ?? habits.region
        habits.clockOffsetSeconds = json["clock_offset"]?.integer ?? 0
        habits.hidesAbsence = json["hides_absence"]?.bool ?? false
        habits.encrypts = json["encrypts"]?.bool ?? false
        habits.emptyPages = Int(json["empty_pages"]?.integer ?? 0)
        habits.conflicts = Int(json["conflicts"]?.integer ?? 0)
        habits.errorsInSuccess = Int(json["errors_in_success"]?.integer ?? 0)
        self.habits = habits
        return true
    }

    public func loseUploadSessions() {
        state.withLock { state in
            state.uploads = [:]
            state.completed = [:]
        }
    }

    public func loseCursors() { state.withLock { $0.tokenGeneration += 1 } }

    /// The store's clock.
    var now: Timestamp {
        let now = Timestamp.now
        return Timestamp(
            seconds: now.seconds.addingSaturating(habits.clockOffsetSeconds),
            nanoseconds: now.nanoseconds
        )
    }

    // MARK: Requests

    public func route(of request: SimulatorRequest) -> String {
        S3Call(request).operation.rawValue
    }

    public func answer(
        to request: SimulatorRequest,
        for trouble: SimulatedTrouble
    ) -> SimulatorAnswer {
        let failure: S3Failure
        var after: Int?
        switch trouble {
        case .rateLimited(_, let seconds):
            after = seconds
            failure = S3Failure(503, "SlowDown", "Please reduce your request rate.")
        case .serverError(let status, let seconds):
            after = seconds
            failure =
                status == 503
                ? S3Failure(503, "ServiceUnavailable", "Reduce your request rate.")
                : S3Failure(
                    status,
                    "InternalError",
                    "We encountered an internal error. Please try again."
                )
        case .expiredToken:
            failure = S3Failure(400, "ExpiredToken", "The provided token has expired.")
        }
        var answer = self.answer(failure, to: S3Call(request), id: nextRequestID())
        if let after { answer.headers.append(("Retry-After", String(after))) }
        return answer
    }

    public func answer(_ request: SimulatorRequest) async -> SimulatorAnswer {
        let call = S3Call(request)
        let id = nextRequestID()
        var answer: SimulatorAnswer
        do throws(S3Failure) {
            let habits = habits
            let signature = try S3Signature(
                checking: call,
                of: account,
                region: habits.region,
                now: now
            )
            answer = try perform(call, signature)
        } catch {
            return self.answer(error, to: call, id: id)
        }
        answer.headers += [("x-amz-request-id", id), ("Date", DAVXML.httpDate(now))]
        return answer
    }

    private func nextRequestID() -> String {
        state.withLock { state in
            state.lastRequest += 1
            let digits = String(state.lastRequest)
            return "OORT" + String(repeating: "0", count: max(0, 12 - digits.utf8.count)) + digits
        }
    }

    private func answer(_ failure: S3Failure, to call: S3Call, id: String) -> SimulatorAnswer {
        var headers: [(name: String, value: String)] = [
            ("x-amz-request-id", id), ("Date", DAVXML.httpDate(now)),
        ]
        if call.bucket != nil, call.key == nil {
            headers.append(("x-amz-bucket-region", habits.region))
        }
        headers += failure.headers
        // An answer to HEAD has no body, so the status has to say it all.
        guard call.request.method != "HEAD", failure.status != 304 else {
            return SimulatorAnswer(status: failure.status, headers: headers)
        }
        headers.append(("Content-Type", "application/xml"))
        return SimulatorAnswer(
            status: failure.status,
            headers: headers,
            body: .bytes(Array(failure.xml(for: call, request: id).utf8))
        )
    }

    private func perform(
        _ call: S3Call,
        _ signature: S3Signature
    ) throws(S3Failure) -> SimulatorAnswer {
        guard call.isReadable else {
            throw S3Failure(400, "InvalidURI", "Couldn't parse the specified URI.")
        }
        if let bucket = call.bucket, bucket != Self.bucket {
            throw S3Failure(
                404,
                "NoSuchBucket",
                "The specified bucket does not exist",
                fields: [("BucketName", bucket)]
            )
        }
        if let key = call.key, key.utf8.count > 1024 {
            throw S3Failure(400, "KeyTooLongError", "Your key is too long")
        }
        switch call.operation {
        case .listBuckets: return listBuckets()
        case .createBucket: return SimulatorAnswer(status: 200)
        case .headBucket:
            return SimulatorAnswer(
                status: 200,
                headers: [("x-amz-bucket-region", habits.region)]
            )
        case .bucketLocation:
            let region = habits.region == "us-east-1" ? "" : habits.region
            return .xml(S3XML.root("LocationConstraint", S3XML.escaped(region)))
        case .bucketVersioning: return versioning()
        case .setVersioning: return try setVersioning(call, S3Payload(of: call, signature))
        case .list, .listV2: return try list(call)
        case .listVersions: return try listVersions(call)
        case .listUploads: return try listUploads(call)
        case .deleteMany: return try deleteMany(call, S3Payload(of: call, signature))
        case .unknown: throw .notImplemented
        default: break
        }
        guard let key = call.key else { throw .notImplemented }
        switch call.operation {
        case .head, .get: return try read(call, key)
        case .put: return try put(call, key, S3Payload(of: call, signature))
        case .copy: return try copy(call, to: key)
        case .delete: return try delete(call, key)
        case .createUpload: return try createUpload(call, key)
        case .uploadPart: return try uploadPart(call, key, S3Payload(of: call, signature))
        case .copyPart: return try copyPart(call, key)
        case .completeUpload: return try completeUpload(call, key, S3Payload(of: call, signature))
        case .abortUpload: return try abortUpload(call, key)
        case .listParts: return try listParts(call, key)
        default: throw .notImplemented
        }
    }

    // MARK: The bucket

    private func listBuckets() -> SimulatorAnswer {
        let created = account.withTree { $0.item($0.rootID)?.createdTime } ?? now
        let bucket =
            S3XML.element("Name", Self.bucket)
            + S3XML.element("CreationDate", created.rfc3339(.milliseconds))
        return .xml(
            S3XML.root(
                "ListAllMyBucketsResult",
                owner + "<Buckets><Bucket>\(bucket)</Bucket></Buckets>"
            )
        )
    }

    /// Whose the bucket is, and all that lies in it.
    var owner: String {
        "<Owner><ID>oort-\(account.person.number)</ID>"
            + S3XML.element("DisplayName", account.displayName) + "</Owner>"
    }

    private func versioning() -> SimulatorAnswer {
        let status = habits.keepsVersions ? S3XML.element("Status", "Enabled") : ""
        return .xml(S3XML.root("VersioningConfiguration", status))
    }

    private func setVersioning(
        _ call: S3Call,
        _ payload: S3Payload
    ) throws(S3Failure) -> SimulatorAnswer {
        let text = String(decoding: payload.bytes, as: UTF8.self)
        switch S3XML.text(of: "Status", in: text[...]) {
        case "Enabled": state.withLock { $0.habits.keepsVersions = true }
        case "Suspended": throw .notImplemented
        default: throw .malformedXML
        }
        return SimulatorAnswer(status: 200)
    }

    /// The bucket's keys in their order, in one step with what is read of the tree.
    func withIndex<Result: Sendable>(
        _ body: (inout SimulatedTree, S3Index) throws(S3Failure) -> Result
    ) throws(S3Failure) -> Result {
        try account.withTree { (tree) throws(S3Failure) -> Result in
            let known = state.withLock { $0.index }
            if let known, known.sequence == tree.sequence { return try body(&tree, known) }
            let index = S3Index(tree)
            state.withLock { $0.index = index }
            return try body(&tree, index)
        }
    }
}

extension SimulatorAnswer {
    /// An answer of XML.
    static func xml(
        _ text: String,
        status: Int = 200,
        headers: [(name: String, value: String)] = []
    ) -> SimulatorAnswer {
        SimulatorAnswer(
            status: status,
            headers: [("Content-Type", "application/xml")] + headers,
            body: .bytes(Array(text.utf8))
        )
    }
}
