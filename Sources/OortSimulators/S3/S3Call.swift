import OortModel

/// A request to the store, its bucket, key and query decoded as S3 does.
struct S3Call: Sendable {
    /// What a request asks for, by the names of S3's own documentation.
    enum Operation: String, Sendable {
        case listBuckets = "ListBuckets"
        case createBucket = "CreateBucket"
        case headBucket = "HeadBucket"
        case bucketLocation = "GetBucketLocation"
        case bucketVersioning = "GetBucketVersioning"
        case setVersioning = "PutBucketVersioning"
        case list = "ListObjects"
        case listV2 = "ListObjectsV2"
        case listVersions = "ListObjectVersions"
        case listUploads = "ListMultipartUploads"
        case deleteMany = "DeleteObjects"
        case head = "HeadObject"
        case get = "GetObject"
        case put = "PutObject"
        case copy = "CopyObject"
        case delete = "DeleteObject"
        case createUpload = "CreateMultipartUpload"
        case uploadPart = "UploadPart"
        case copyPart = "UploadPartCopy"
        case completeUpload = "CompleteMultipartUpload"
        case abortUpload = "AbortMultipartUpload"
        case listParts = "ListParts"
        case unknown
    }

    let request: SimulatorRequest
    /// Nil for the store itself.
    let bucket: String?
    /// Nil for the bucket itself, and for a key that is no UTF-8.
    let key: String?
    /// Whether the path could be read at all.
    let isReadable: Bool
    let query: [(name: String, value: String)]

    init(_ request: SimulatorRequest) {
        self.request = request
        let path = S3Percent.decoded(request.rawPath.dropFirst())
            .flatMap { String(validating: $0, as: UTF8.self) }
        isReadable = path != nil
        let (bucket, key) = (path ?? "").cut(atFirst: "/") ?? ((path ?? "")[...], "")
        self.bucket = bucket.isEmpty ? nil : String(bucket)
        self.key = key.isEmpty ? nil : String(key)
        query = request.rawQuery.split(separator: "&").map { pair in
            let (name, value) = pair.cut(atFirst: "=") ?? (pair[...], "")
            func text(_ part: Substring) -> String {
                S3Percent.decoded(part, plusIsSpace: true)
                    .map { String(decoding: $0, as: UTF8.self) } ?? String(part)
            }
            return (text(name), text(value))
        }
    }

    /// The first value of a query field; empty where it has none.
    func query(_ name: String) -> String? { query.first { $0.name == name }?.value }

    func header(_ name: String) -> String? { request.header(name) }

    /// Fields of the query that stand for things that this store does not have.
    private static let unsupported: Set<String> = [
        "accelerate", "acl", "analytics", "attributes", "cors", "encryption",
        "intelligent-tiering", "inventory", "legal-hold", "lifecycle", "logging", "metrics",
        "notification", "object-lock", "ownershipControls", "policy", "policyStatus",
        "publicAccessBlock", "replication", "requestPayment", "restore", "retention", "select",
        "tagging", "torrent", "website",
    ]

    var operation: Operation {
        func has(_ name: String) -> Bool { query.contains { $0.name == name } }
        guard !query.contains(where: { Self.unsupported.contains($0.name) }) else {
            return .unknown
        }
        guard bucket != nil else { return request.method == "GET" ? .listBuckets : .unknown }
        let isCopy = header("x-amz-copy-source") != nil
        guard key != nil else {
            switch request.method {
            case "HEAD": return .headBucket
            case "PUT": return has("versioning") ? .setVersioning : .createBucket
            case "POST" where has("delete"): return .deleteMany
            case "GET":
                if has("location") { return .bucketLocation }
                if has("versioning") { return .bucketVersioning }
                if has("versions") { return .listVersions }
                if has("uploads") { return .listUploads }
                return query("list-type") == "2" ? .listV2 : .list
            default: return .unknown
            }
        }
        switch request.method {
        case "HEAD": return .head
        case "GET": return has("uploadId") ? .listParts : .get
        case "DELETE": return has("uploadId") ? .abortUpload : .delete
        case "POST" where has("uploads"): return .createUpload
        case "POST" where has("uploadId"): return .completeUpload
        case "PUT" where has("uploadId"): return isCopy ? .copyPart : .uploadPart
        case "PUT": return isCopy ? .copy : .put
        default: return .unknown
        }
    }
}
