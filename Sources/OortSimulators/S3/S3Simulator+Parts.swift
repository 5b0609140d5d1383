import Crypto
import OortModel
import Synchronization

extension S3Simulator {
    /// The smallest part but the last.
    private static let smallestPart: Int64 = 5 << 20

    /// The upload that a request names.
    func upload(_ call: S3Call, _ key: String) throws(S3Failure) -> (id: String, Upload) {
        let id = call.query("uploadId") ?? ""
        guard let upload = state.withLock({ $0.uploads[id] }), upload.key.isSameText(as: key) else {
            throw .noSuchUpload(id)
        }
        return (id, upload)
    }

    func createUpload(_ call: S3Call, _ key: String) throws(S3Failure) -> SimulatorAnswer {
        let head = try S3ObjectHead(call)
        try account.withTree { (tree) throws(S3Failure) in
            try checkWritable(key, tree.object(at: key), tree)
        }
        let begun = Timestamp(seconds: now.seconds)
        let random = account.withTree { $0.random.hex(32) }
        let id = state.withLock { state in
            state.lastUpload += 1
            let id = "upload.\(state.lastUpload).\(random)"
            state.uploads[id] = Upload(key: key, head: head, begun: begun)
            return id
        }
        return .xml(
            S3XML.root(
                "InitiateMultipartUploadResult",
                S3XML.element("Bucket", Self.bucket) + S3XML.element("Key", key)
                    + S3XML.element("UploadId", id)
            )
        )
    }

    private func partNumber(_ call: S3Call) throws(S3Failure) -> Int {
        guard let number = call.query("partNumber").flatMap({ Int($0) }),
            (1...10_000).contains(number)
        else {
            throw .argument("Part number must be an integer between 1 and 10000, inclusive")
        }
        return number
    }

    /// Keeps a part, in place of one of its number that came before.
    private func keep(
        _ content: SimulatedContent,
        as number: Int,
        of id: String
    ) throws(S3Failure) -> Upload.Part {
        guard account.hasRoom(for: content.size) else { throw .noRoom }
        let part = Upload.Part(content: content, time: Timestamp(seconds: now.seconds))
        let isKept = state.withLock { state in
            guard state.uploads[id] != nil else { return false }
            state.uploads[id]?.parts[number] = part
            return true
        }
        guard isKept else { throw .noSuchUpload(id) }
        return part
    }

    func uploadPart(
        _ call: S3Call,
        _ key: String,
        _ payload: S3Payload
    ) throws(S3Failure) -> SimulatorAnswer {
        try checkLength(call)
        let (id, _) = try upload(call, key)
        let number = try partNumber(call)
        let part = try keep(SimulatedContent(payload.bytes), as: number, of: id)
        return SimulatorAnswer(
            status: 200,
            headers: [("ETag", "\"\(part.content.md5)\"")]
                + payload.checksums.map { (name: $0.key, value: $0.value) }
        )
    }

    func copyPart(_ call: S3Call, _ key: String) throws(S3Failure) -> SimulatorAnswer {
        let (id, _) = try upload(call, key)
        let number = try partNumber(call)
        let source = try source(of: call)
        var content = source.content
        if let text = call.header("x-amz-copy-source-range") {
            guard case .part(let range) = ByteRange.parse(text, size: content.size),
                text == "bytes=\(range.lowerBound)-\(range.upperBound - 1)"
            else {
                throw .argument("Range specified is not valid for source object")
            }
            content = SimulatedContent(content.bytes(in: range))
        }
        let part = try keep(content, as: number, of: id)
        return .xml(
            S3XML.root(
                "CopyPartResult",
                S3XML.element("LastModified", part.time.rfc3339(.milliseconds))
                    + S3XML.element("ETag", "\"\(part.content.md5)\"")
            )
        )
    }

    func abortUpload(_ call: S3Call, _ key: String) throws(S3Failure) -> SimulatorAnswer {
        let (id, _) = try upload(call, key)
        state.withLock { $0.uploads[id] = nil }
        return SimulatorAnswer(status: 204)
    }

    func completeUpload(
        _ call: S3Call,
        _ key: String,
        _ payload: S3Payload
    ) throws(S3Failure) -> SimulatorAnswer {
        let asked = call.query("uploadId") ?? ""
        if let before = state.withLock({ $0.completed[asked] }) { return before }
        let (id, upload) = try upload(call, key)
        guard let text = String(validating: payload.bytes, as: UTF8.self) else {
            throw .malformedXML
        }
        let contents = try contents(ofParts: S3XML.contents(of: "Part", in: text[...]), upload)
        let content = SimulatedContent(joining: contents)
        if let size = call.header("x-amz-mp-object-size"), Int64(size) != content.size {
            throw S3Failure(
                400,
                "InvalidRequest",
                "The provided 'x-amz-mp-object-size' header value does not match what was uploaded"
            )
        }
        if let failure = failsInSuccess() { return failure }
        var digests = Insecure.MD5()
        for content in contents { digests.update(data: Self.digest(content)) }
        var head = upload.head
        head.tag = "\(digests.finalize().hexadecimal)-\(contents.count)"
        let object = try store(content, at: key, head, for: call)
        let answer = SimulatorAnswer.xml(
            S3XML.root(
                "CompleteMultipartUploadResult",
                S3XML.element("Location", "https://\(Self.host)/\(Self.bucket)/\(key)")
                    + S3XML.element("Bucket", Self.bucket) + S3XML.element("Key", key)
                    + S3XML.element("ETag", "\"\(object.tag)\"")
            ),
            headers: headers(ofStored: object).filter { $0.name != "ETag" }
        )
        state.withLock { state in
            state.uploads[id] = nil
            state.completed[id] = answer
        }
        return answer
    }

    private static func digest(_ content: SimulatedContent) -> [UInt8] {
        var digest = Insecure.MD5()
        content.forEachBlock(of: 1 << 20) { digest.update(data: $0) }
        return Array(digest.finalize())
    }

    /// The contents of the parts that an end names, which must all be there as they are named.
    private func contents(
        ofParts parts: [Substring],
        _ upload: Upload
    ) throws(S3Failure) -> [SimulatedContent] {
        guard (1...10_000).contains(parts.count) else { throw .malformedXML }
        var contents: [SimulatedContent] = []
        var last = 0
        for text in parts {
            guard let number = S3XML.text(of: "PartNumber", in: text).flatMap({ Int($0) }),
                let tag = S3XML.text(of: "ETag", in: text)
            else { throw .malformedXML }
            guard number > last else {
                throw S3Failure(
                    400,
                    "InvalidPartOrder",
                    "The list of parts was not in ascending order. Parts must be ordered by part "
                        + "number."
                )
            }
            last = number
            guard let part = upload.parts[number], Self.matches(tag, part.content.md5) else {
                throw S3Failure(
                    400,
                    "InvalidPart",
                    "One or more of the specified parts could not be found. The part may not have "
                        + "been uploaded, or the specified entity tag may not match the part's "
                        + "entity tag.",
                    fields: [("PartNumber", String(number))]
                )
            }
            contents.append(part.content)
        }
        guard contents.dropLast().allSatisfy({ $0.size >= Self.smallestPart }) else {
            throw S3Failure(
                400,
                "EntityTooSmall",
                "Your proposed upload is smaller than the minimum allowed size"
            )
        }
        return contents
    }
}
