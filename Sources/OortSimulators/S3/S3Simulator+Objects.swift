import OortModel
import Synchronization

extension S3Simulator {
    // MARK: Conditions

    /// An ETag in a condition, with or without its quotes.
    private static func bare(_ tag: String) -> String {
        tag.dropping(beginning: "\"").flatMap { $0.dropping(ending: "\"") }.map(String.init) ?? tag
    }

    static func matches(_ condition: String, _ tag: String) -> Bool {
        condition == "*" || bare(condition).lowercased() == tag.lowercased()
    }

    /// Refuses a write whose conditions do not hold of what is there.
    func checkConditions(
        _ call: S3Call,
        _ key: String,
        _ object: S3Object?
    ) throws(S3Failure) {
        let noneMatch = call.header("If-None-Match")
        let match = call.header("If-Match")
        guard noneMatch != nil || match != nil else { return }
        let isConflict = state.withLock { state in
            guard state.habits.conflicts > 0 else { return false }
            state.habits.conflicts -= 1
            return true
        }
        if isConflict { throw .conflict }
        if let noneMatch {
            guard noneMatch == "*" else { throw .notImplemented }
            guard object == nil else { throw .unmet("If-None-Match") }
        }
        if let match {
            guard let object else { throw .noSuchKey(key) }
            guard Self.matches(match, object.tag) else { throw .unmet("If-Match") }
        }
    }

    /// Refuses what the account's conditions do not let anybody write.
    func checkWritable(
        _ key: String,
        _ object: S3Object?,
        _ tree: SimulatedTree
    ) throws(S3Failure) {
        let refused = tree.conditions.refusedNames
        guard
            refused.isEmpty
                || !key.parts(between: "/").contains(where: { refused.contains(String($0)) })
        else { throw S3Failure(400, "InvalidObjectName", "The object's name is not taken.") }
        var parts = key.parts(between: "/").map(String.init)
        while !parts.isEmpty {
            if let item = tree.item(at: parts), tree.isReadOnly(item.id) { throw .denied() }
            parts.removeLast()
        }
        if let object, tree.isReadOnly(object.item.id) { throw .denied() }
    }

    private func missing(_ key: String) -> S3Failure {
        habits.hidesAbsence ? .denied() : .noSuchKey(key)
    }

    /// The version of a key that a request names, or what is current.
    private func version(
        _ id: String?,
        of key: String,
        _ tree: SimulatedTree,
        _ index: S3Index
    ) throws(S3Failure) -> S3Object {
        let keepsVersions = habits.keepsVersions
        if let id, keepsVersions || id != "null" {
            let versions = tree.history(of: key, index.itemIDs(of: key))
            guard let version = versions.first(where: { $0.id == id }) else {
                throw .noSuchVersion(key, id)
            }
            guard let object = version.object else {
                var failure = S3Failure.notAllowed
                failure.headers = [("x-amz-delete-marker", "true"), ("x-amz-version-id", id)]
                throw failure
            }
            return object
        }
        if let object = tree.object(at: key) { return object }
        var failure = missing(key)
        if keepsVersions,
            let newest = tree.history(of: key, index.itemIDs(of: key)).first, newest.object == nil
        {
            failure.headers = [
                ("x-amz-delete-marker", "true"), ("x-amz-version-id", newest.id),
            ]
        }
        throw failure
    }

    // MARK: Reading

    /// The headers that describe an object.
    private func headers(
        of object: S3Object,
        _ call: S3Call
    ) -> [(name: String, value: String)] {
        let head = object.head
        var fields = head.fields
        if fields["content-type"] == nil { fields["content-type"] = "binary/octet-stream" }
        for (name, value) in call.query {
            guard let field = name.dropping(beginning: "response-") else { continue }
            fields[String(field)] = value
        }
        var headers: [(name: String, value: String)] = fields.sorted { $0.key < $1.key }
            .map { ($0.key, $0.value) }
        headers += [
            ("ETag", "\"\(object.tag)\""), ("Last-Modified", DAVXML.httpDate(object.modified)),
            ("Accept-Ranges", "bytes"),
        ]
        if habits.keepsVersions { headers.append(("x-amz-version-id", object.versionID)) }
        if let storageClass = head.storageClass {
            headers.append(("x-amz-storage-class", storageClass))
        }
        headers.append(("x-amz-server-side-encryption", head.isEncrypted ? "aws:kms" : "AES256"))
        if call.header("x-amz-checksum-mode")?.uppercased() == "ENABLED",
            call.header("Range") == nil, !head.checksums.isEmpty
        {
            headers += head.checksums.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
            headers.append(("x-amz-checksum-type", "FULL_OBJECT"))
        }
        return headers
    }

    /// `GetObject` and `HeadObject`.
    func read(_ call: S3Call, _ key: String) throws(S3Failure) -> SimulatorAnswer {
        let id = call.query("versionId")
        let object = try withIndex { (tree, index) throws(S3Failure) in
            try version(id, of: key, tree, index)
        }
        if let match = call.header("If-Match"), !Self.matches(match, object.tag) {
            throw .unmet("If-Match")
        }
        if let noneMatch = call.header("If-None-Match"), Self.matches(noneMatch, object.tag) {
            throw S3Failure(304, "NotModified", "", headers: [("ETag", "\"\(object.tag)\"")])
        }
        var headers = headers(of: object, call)
        if call.request.method == "HEAD" {
            headers.append(("Content-Length", String(object.content.size)))
            return SimulatorAnswer(status: 200, headers: headers)
        }
        guard !object.isArchived else { throw .archived }
        let size = object.content.size
        guard let text = call.header("Range") else {
            return SimulatorAnswer(
                status: 200,
                headers: headers,
                body: .content(object.content, 0..<size)
            )
        }
        switch ByteRange.parse(text, size: size) {
        case .whole:
            return SimulatorAnswer(
                status: 200,
                headers: headers,
                body: .content(object.content, 0..<size)
            )
        case .part(let range):
            headers.append(
                ("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(size)")
            )
            return SimulatorAnswer(
                status: 206,
                headers: headers,
                body: .content(object.content, range)
            )
        case .unsatisfiable:
            throw S3Failure(
                416,
                "InvalidRange",
                "The requested range is not satisfiable",
                fields: [("ActualObjectSize", String(size)), ("RangeRequested", text)],
                headers: [("Content-Range", "bytes */\(size)")]
            )
        }
    }

    // MARK: Writing

    /// Puts a content at a key, with all checks in the same step.
    func store(
        _ content: SimulatedContent,
        at key: String,
        _ head: S3ObjectHead,
        for call: S3Call
    ) throws(S3Failure) -> S3Object {
        guard account.hasRoom(for: content.size) else { throw .noRoom }
        let habits = habits
        return try account.withTree { (tree) throws(S3Failure) -> S3Object in
            let before = tree.object(at: key)
            try checkWritable(key, before, tree)
            try checkConditions(call, key, before)
            var head = head
            if habits.encrypts {
                head.isEncrypted = true
                head.tag = tree.random.hex(32)
            }
            guard let made = tree.put(content, at: key, head, keepsVersions: habits.keepsVersions)
            else { throw S3Failure(500, "InternalError", "The object could not be stored.") }
            return made
        }
    }

    /// The headers of an answer to a write, which describe what was written.
    func headers(ofStored object: S3Object) -> [(name: String, value: String)] {
        var headers: [(name: String, value: String)] = [
            ("ETag", "\"\(object.tag)\""),
            ("x-amz-server-side-encryption", object.head.isEncrypted ? "aws:kms" : "AES256"),
        ]
        if habits.keepsVersions { headers.append(("x-amz-version-id", object.versionID)) }
        return headers
    }

    func put(
        _ call: S3Call,
        _ key: String,
        _ payload: S3Payload
    ) throws(S3Failure) -> SimulatorAnswer {
        try checkLength(call)
        var head = try S3ObjectHead(call)
        head.checksums = payload.checksums
        let object = try store(SimulatedContent(payload.bytes), at: key, head, for: call)
        return SimulatorAnswer(
            status: 200,
            headers: headers(ofStored: object)
                + payload.checksums.map { (name: $0.key, value: $0.value) }
        )
    }

    /// Requires the length of a body before it; of a framed body, the length of its content is enough.
    func checkLength(_ call: S3Call) throws(S3Failure) {
        let isTold = ["Content-Length", "x-amz-decoded-content-length"]
            .contains { call.header($0) != nil }
        guard isTold || call.request.bytes.isEmpty else {
            throw S3Failure(
                411,
                "MissingContentLength",
                "You must provide the Content-Length HTTP header."
            )
        }
    }

    // MARK: Copying

    /// The object that a request copies from, after its conditions on that.
    func source(of call: S3Call) throws(S3Failure) -> S3Object {
        let field = call.header("x-amz-copy-source") ?? ""
        let (place, query) = field.cut(atLast: "?") ?? (field[...], "")
        guard
            let path = S3Percent.decoded(place.dropping(beginning: "/") ?? place)
                .flatMap({ String(validating: $0, as: UTF8.self) }),
            let (bucket, key) = path.cut(atFirst: "/"), !key.isEmpty
        else { throw .argument("Invalid copy source object key") }
        guard bucket == Self.bucket else {
            throw S3Failure(404, "NoSuchBucket", "The specified bucket does not exist")
        }
        let id = query.dropping(beginning: "versionId=").map(String.init)
        let object = try withIndex { (tree, index) throws(S3Failure) in
            try version(id, of: String(key), tree, index)
        }
        if let match = call.header("x-amz-copy-source-if-match"),
            !Self.matches(match, object.tag)
        {
            throw .unmet("x-amz-copy-source-If-Match")
        }
        if let noneMatch = call.header("x-amz-copy-source-if-none-match"),
            Self.matches(noneMatch, object.tag)
        {
            throw .unmet("x-amz-copy-source-If-None-Match")
        }
        guard !object.isArchived else { throw .archived }
        return object
    }

    /// Whether the next copy, or end of an upload, is to fail behind a 200.
    func failsInSuccess() -> SimulatorAnswer? {
        let fails = state.withLock { state in
            guard state.habits.errorsInSuccess > 0 else { return false }
            state.habits.errorsInSuccess -= 1
            return true
        }
        guard fails else { return nil }
        let words =
            S3XML.element("Code", "InternalError")
            + S3XML.element("Message", "We encountered an internal error. Please try again.")
        // The head goes out before the work is done, and blanks after it, for as long as that takes.
        return .xml(S3XML.document("  \n  <Error>\(words)</Error>"))
    }

    /// The largest object that one request copies.
    static let largestCopy: Int64 = 5 << 30

    func copy(_ call: S3Call, to key: String) throws(S3Failure) -> SimulatorAnswer {
        let source = try source(of: call)
        guard source.content.size <= Self.largestCopy else {
            throw S3Failure(
                400,
                "InvalidRequest",
                "The specified copy source is larger than the maximum allowable size for a copy "
                    + "source: 5368709120"
            )
        }
        let wished = try S3ObjectHead(call)
        var head = source.head
        head.storageClass = wished.storageClass
        // Of the whole bytes, whatever it was of the source's.
        head.tag = nil
        head.isEncrypted = false
        switch call.header("x-amz-metadata-directive")?.uppercased() {
        case "REPLACE": head.fields = wished.fields
        case nil, "COPY":
            let isSame =
                source.key.isSameText(as: key)
                && (call.header("x-amz-copy-source") ?? "").cut(atLast: "?") == nil
            guard !isSame || wished.storageClass != nil else {
                throw S3Failure(
                    400,
                    "InvalidRequest",
                    "This copy request is illegal because it is trying to copy an object to "
                        + "itself without changing the object's metadata, storage class, website "
                        + "redirect location or encryption attributes."
                )
            }
        default: throw .argument("Unknown metadata directive.")
        }
        if let failure = failsInSuccess() { return failure }
        let object = try store(source.content, at: key, head, for: call)
        var headers = headers(ofStored: object)
        if habits.keepsVersions {
            headers.append(("x-amz-copy-source-version-id", source.versionID))
        }
        return .xml(S3XML.root("CopyObjectResult", Self.copied(object)), headers: headers)
    }

    private static func copied(_ object: S3Object) -> String {
        S3XML.element("LastModified", object.modified.rfc3339(.milliseconds))
            + S3XML.element("ETag", "\"\(object.tag)\"")
    }
}
