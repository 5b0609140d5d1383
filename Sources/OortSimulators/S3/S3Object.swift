import OortModel

/// What an object has beside its bytes, kept with the revision of an item that it is.
struct S3ObjectHead: Sendable {
    /// Header fields that come back as they were sent, by their names in lower case: the type, the
    /// metadata (`x-amz-meta-…`) and their like.
    var fields: [String: String] = [:]
    var storageClass: String?
    /// The ETag where it is not the MD5 of the bytes.
    var tag: String?
    var checksums: [String: String] = [:]
    /// Whether it is encrypted in a way that makes the ETag say nothing of the bytes.
    var isEncrypted = false

    init() {}

    /// The fields that an object keeps.
    private static let kept: Set<String> = [
        "cache-control", "content-disposition", "content-encoding", "content-language",
        "content-type", "expires", "x-amz-website-redirect-location",
    ]

    /// What a request says of the object that it makes.
    init(_ call: S3Call) throws(S3Failure) {
        for (name, value) in call.request.headers
        where Self.kept.contains(name) || name.begins(with: "x-amz-meta-") {
            fields[name] = value
        }
        // The frames of a body on its way are no part of the object.
        let codings = (fields["content-encoding"] ?? "").parts(between: ",")
            .map { $0.drop { $0 == " " } }.filter { $0 != "aws-chunked" && !$0.isEmpty }
        fields["content-encoding"] = codings.isEmpty ? nil : codings.joined(separator: ",")
        let metadata = fields.filter { $0.key.begins(with: "x-amz-meta-") }
        let length = metadata.reduce(0) {
            $0 + $1.key.utf8.count - "x-amz-meta-".utf8.count + $1.value.utf8.count
        }
        guard length <= 2048 else {
            throw S3Failure(
                400,
                "MetadataTooLarge",
                "Your metadata headers exceed the maximum allowed metadata size",
                fields: [("Size", "\(length)"), ("MaxSizeAllowed", "2048")]
            )
        }
        storageClass = call.header("x-amz-storage-class").flatMap { $0 == "STANDARD" ? nil : $0 }
    }

    /// What an object has that was put into the account past the protocol: the head that rclone would
    /// have sent.
    init(of item: SimulatedItem, _ revision: SimulatedRevision) {
        fields["content-type"] = item.mimeType
        let digits = String(revision.modifiedTime.nanoseconds)
        fields["x-amz-meta-mtime"] =
            "\(revision.modifiedTime.seconds)."
            + String(repeating: "0", count: 9 - digits.utf8.count) + digits
    }

    /// The modified time that the object's writer gave it.
    var modifiedTime: Timestamp? {
        guard let text = fields["x-amz-meta-mtime"] else { return nil }
        let (whole, fraction) = text.cut(atFirst: ".") ?? (text[...], "")
        guard let seconds = Int64(whole), fraction.utf8.count <= 9,
            fraction.isEmpty || Int32(fraction) != nil
        else { return nil }
        let filled = fraction + String(repeating: "0", count: 9 - fraction.utf8.count)
        return Timestamp(seconds: seconds, nanoseconds: Int32(filled) ?? 0)
    }

    // MARK: As it is kept

    init(_ json: JSON) {
        fields = (json["fields"]?.fields ?? [:]).compactMapValues(\.text)
        checksums = (json["checksums"]?.fields ?? [:]).compactMapValues(\.text)
        storageClass = json["class"]?.text
        tag = json["tag"]?.text
        isEncrypted = json["encrypted"]?.bool ?? false
    }

    var json: JSON {
        [
            "fields": .object(fields.mapValues { .string($0) }),
            "checksums": .object(checksums.mapValues { .string($0) }),
            "class": JSON(storageClass), "tag": JSON(tag), "encrypted": .bool(isEncrypted),
        ]
    }
}

/// One version of an object.
struct S3Object: Sendable {
    var key: String
    /// The item of the tree; where `revision` is nil a folder without anything in it, which shows as
    /// its own marker.
    var item: SimulatedItem
    var revision: SimulatedRevision?

    var content: SimulatedContent { revision?.content ?? Self.nothing }
    private static let nothing = SimulatedContent([])

    var head: S3ObjectHead {
        guard let revision else { return S3ObjectHead() }
        return item.extra[Self.place(of: revision)].map(S3ObjectHead.init)
            ?? S3ObjectHead(of: item, revision)
    }

    /// The ETag without its quotes.
    var tag: String { head.tag ?? content.md5 }

    /// When the store took it, in whole seconds.
    var modified: Timestamp {
        Timestamp(seconds: (revision?.serverModifiedTime ?? item.serverModifiedTime).seconds)
    }

    /// The id of the version in a bucket that keeps versions.
    var versionID: String { revision?.id ?? "null" }

    var isArchived: Bool { ["GLACIER", "DEEP_ARCHIVE"].contains(head.storageClass ?? "") }

    /// Where an item keeps the head of one of its revisions.
    static func place(of revision: SimulatedRevision) -> String { "s3 " + revision.id }
}

/// One entry of a key's history: a content, or the mark of a deletion.
struct S3Version: Sendable {
    var key: String
    var id: String
    /// Nil for the mark of a deletion.
    var object: S3Object?
    /// The item that it belongs to.
    var itemID: String
    var time: Timestamp
    var isLatest = false
}
