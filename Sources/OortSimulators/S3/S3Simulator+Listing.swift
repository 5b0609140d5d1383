import OortModel
import Synchronization

extension S3Simulator {
    /// How many entries a page has at most.
    private static let largestPage = 1000

    private func limit(_ call: S3Call, _ field: String) throws(S3Failure) -> Int {
        guard let text = call.query(field), !text.isEmpty else { return Self.largestPage }
        guard let number = Int(text), number >= 0 else {
            throw .argument("Provided \(field) not an integer or within integer range")
        }
        return min(number, Self.largestPage)
    }

    /// How keys are written in an answer.
    private func encoder(_ call: S3Call) throws(S3Failure) -> (String) -> String {
        switch call.query("encoding-type") {
        case nil: return { $0 }
        case "url": return { S3Percent.encoded($0.utf8, keepsSlash: true, spaceAsPlus: true) }
        default: throw .argument("Invalid Encoding Method specified in Request")
        }
    }

    // MARK: Objects

    /// Either form of a listing.
    func list(_ call: S3Call) throws(S3Failure) -> SimulatorAnswer {
        let isV2 = call.operation == .listV2
        let limit = try limit(call, "max-keys")
        let encode = try encoder(call)
        var listing = S3Listing(prefix: call.query("prefix") ?? "")
        listing.delimiter = call.query("delimiter").flatMap { $0.isEmpty ? nil : $0 }
        listing.after = call.query(isV2 ? "start-after" : "marker").flatMap {
            $0.isEmpty ? nil : $0
        }
        if isV2, let token = call.query("continuation-token") {
            listing.after = try key(ofToken: token)
        }
        let isEmptyPage = state.withLock { state in
            guard state.habits.emptyPages > 0, limit > 0 else { return false }
            state.habits.emptyPages -= 1
            return true
        }
        let wanted = listing
        let (found, isTruncated) = try withIndex {
            (tree, index) throws(S3Failure) -> ([(S3Listing.Found, S3Object?)], Bool) in
            // Pages may be smaller than what was asked for.
            let isWhole = wanted.delimiter == nil && wanted.prefix.isEmpty
            let size =
                isWhole ? account.pageSize(enumerating: index.live.count, atMost: limit) : limit
            var found: [(S3Listing.Found, S3Object?)] = []
            var isTruncated = isEmptyPage
            guard limit > 0, !isEmptyPage else { return (found, isTruncated) }
            wanted.forEach(in: index.live) { entry in
                guard found.count < size else {
                    isTruncated = true
                    return false
                }
                if case .entry(let entry) = entry {
                    guard let object = tree.object(at: entry.key) else { return true }
                    found.append((.entry(entry), object))
                } else {
                    found.append((entry, nil))
                }
                return true
            }
            return (found, isTruncated)
        }
        var last = listing.after ?? ""
        var text = ""
        for (entry, object) in found {
            switch entry {
            case .entry(let entry):
                last = entry.key
                guard let object else { continue }
                let withOwner = !isV2 || call.query("fetch-owner") == "true"
                text += "<Contents>\(contents(object, encode, withOwner: withOwner))</Contents>"
            case .prefix(let prefix):
                last = prefix
                text +=
                    "<CommonPrefixes>\(S3XML.element("Prefix", encode(prefix)))</CommonPrefixes>"
            }
        }
        var head =
            S3XML.element("Name", Self.bucket) + S3XML.element("Prefix", encode(listing.prefix))
            + S3XML.element("MaxKeys", String(limit))
            + S3XML.element("IsTruncated", isTruncated ? "true" : "false")
        if let delimiter = listing.delimiter {
            head += S3XML.element("Delimiter", encode(delimiter))
        }
        if let type = call.query("encoding-type") { head += S3XML.element("EncodingType", type) }
        if isV2 {
            head += S3XML.element("KeyCount", String(found.count))
            if let token = call.query("continuation-token") {
                head += S3XML.element("ContinuationToken", token)
            }
            if let start = call.query("start-after") {
                head += S3XML.element("StartAfter", encode(start))
            }
            if isTruncated { head += S3XML.element("NextContinuationToken", token(after: last)) }
        } else {
            head += S3XML.element("Marker", encode(listing.after ?? ""))
            if isTruncated, listing.delimiter != nil {
                head += S3XML.element("NextMarker", encode(last))
            }
        }
        return .xml(
            S3XML.root("ListBucketResult", head + text),
            headers: [("x-amz-bucket-region", habits.region)]
        )
    }

    private func contents(
        _ object: S3Object,
        _ encode: (String) -> String,
        withOwner: Bool
    ) -> String {
        S3XML.element("Key", encode(object.key))
            + S3XML.element("LastModified", object.modified.rfc3339(.milliseconds))
            + S3XML.element("ETag", "\"\(object.tag)\"")
            + S3XML.element("Size", String(object.content.size))
            + S3XML.element("StorageClass", object.head.storageClass ?? "STANDARD")
            + (withOwner ? owner : "")
    }

    private func token(after key: String) -> String {
        let generation = state.withLock { $0.tokenGeneration }
        return Base64.encode(Array("\(generation)/\(key)".utf8))
    }

    private func key(ofToken token: String) throws(S3Failure) -> String {
        let generation = state.withLock { $0.tokenGeneration }
        guard let bytes = Base64.decode(token),
            let (number, key) = String(decoding: bytes, as: UTF8.self).cut(atFirst: "/"),
            Int(number) == generation
        else { throw .argument("The continuation token provided is incorrect") }
        return String(key)
    }

    // MARK: Versions

    /// All versions of all keys, the newest of each first.
    func listVersions(_ call: S3Call) throws(S3Failure) -> SimulatorAnswer {
        let limit = try limit(call, "max-keys")
        let encode = try encoder(call)
        let keyMarker = call.query("key-marker").flatMap { $0.isEmpty ? nil : $0 }
        let idMarker = call.query("version-id-marker").flatMap { $0.isEmpty ? nil : $0 }
        guard idMarker == nil || keyMarker != nil else {
            throw .argument("A version-id marker cannot be specified without a key marker.")
        }
        var listing = S3Listing(prefix: call.query("prefix") ?? "")
        listing.delimiter = call.query("delimiter").flatMap { $0.isEmpty ? nil : $0 }
        listing.after = keyMarker
        let wanted = listing
        let isVersioned = habits.keepsVersions
        let (text, next) = try withIndex {
            (tree, index) throws(S3Failure) -> (String, (key: String, id: String?)?) in
            var text = ""
            var count = 0
            var last: (key: String, id: String?)?
            var next: (key: String, id: String?)?
            /// Writes what still has room; false when there is none.
            func add(_ words: String, _ key: String, _ id: String?) -> Bool {
                guard count < limit else {
                    next = last
                    return false
                }
                text += words
                count += 1
                last = (key, id)
                return true
            }
            func add(_ versions: some Sequence<S3Version>) -> Bool {
                versions.allSatisfy { version in
                    guard isVersioned || version.isLatest && version.object != nil else {
                        return true
                    }
                    return add(
                        self.words(version, encode, isVersioned: isVersioned),
                        version.key,
                        version.id
                    )
                }
            }
            guard limit > 0 else { return ("", nil) }
            if let keyMarker, let idMarker {
                let versions = tree.history(of: keyMarker, index.itemIDs(of: keyMarker))
                let rest = versions.drop { $0.id != idMarker }.dropFirst()
                guard add(rest) else { return (text, next) }
            }
            wanted.forEach(in: index.all) { found in
                switch found {
                case .entry(let entry): add(tree.history(of: entry.key, entry.itemIDs))
                case .prefix(let prefix):
                    add(
                        "<CommonPrefixes>\(S3XML.element("Prefix", encode(prefix)))"
                            + "</CommonPrefixes>",
                        prefix,
                        nil
                    )
                }
            }
            return (text, next)
        }
        var head =
            S3XML.element("Name", Self.bucket) + S3XML.element("Prefix", encode(listing.prefix))
            + S3XML.element("KeyMarker", encode(keyMarker ?? ""))
            + S3XML.element("VersionIdMarker", idMarker ?? "")
            + S3XML.element("MaxKeys", String(limit))
            + S3XML.element("IsTruncated", next == nil ? "false" : "true")
        if let delimiter = listing.delimiter {
            head += S3XML.element("Delimiter", encode(delimiter))
        }
        if let type = call.query("encoding-type") { head += S3XML.element("EncodingType", type) }
        if let next {
            head += S3XML.element("NextKeyMarker", encode(next.key))
            if let id = next.id { head += S3XML.element("NextVersionIdMarker", id) }
        }
        return .xml(S3XML.root("ListVersionsResult", head + text))
    }

    private func words(
        _ version: S3Version,
        _ encode: (String) -> String,
        isVersioned: Bool
    ) -> String {
        let beginning =
            S3XML.element("Key", encode(version.key))
            + S3XML.element("VersionId", isVersioned ? version.id : "null")
            + S3XML.element("IsLatest", version.isLatest ? "true" : "false")
            + S3XML.element("LastModified", version.time.rfc3339(.milliseconds))
        guard let object = version.object else {
            return "<DeleteMarker>\(beginning)\(owner)</DeleteMarker>"
        }
        return "<Version>" + beginning + S3XML.element("ETag", "\"\(object.tag)\"")
            + S3XML.element("Size", String(object.content.size))
            + S3XML.element("StorageClass", object.head.storageClass ?? "STANDARD") + owner
            + "</Version>"
    }

    // MARK: Uploads in parts

    func listUploads(_ call: S3Call) throws(S3Failure) -> SimulatorAnswer {
        let limit = try limit(call, "max-uploads")
        let encode = try encoder(call)
        let prefix = call.query("prefix") ?? ""
        let marker = (call.query("key-marker") ?? "", call.query("upload-id-marker") ?? "")
        func order(_ key: String, _ id: String) -> [UInt8] { Array(key.utf8) + [0] + id.utf8 }
        let uploads = state.withLock { $0.uploads }
            .filter { $0.value.key.begins(with: prefix) }
            .map { (id: $0.key, upload: $0.value) }
            .filter { entry in
                guard !marker.0.isEmpty else { return true }
                // Without an upload's id a key is done with all of its uploads.
                return marker.1.isEmpty
                    ? Array(marker.0.utf8).lexicographicallyPrecedes(entry.upload.key.utf8)
                    : order(marker.0, marker.1)
                        .lexicographicallyPrecedes(order(entry.upload.key, entry.id))
            }
            .sorted {
                order($0.upload.key, $0.id).lexicographicallyPrecedes(order($1.upload.key, $1.id))
            }
        let page = uploads.prefix(limit)
        var text =
            S3XML.element("Bucket", Self.bucket) + S3XML.element("KeyMarker", encode(marker.0))
            + S3XML.element("UploadIdMarker", marker.1) + S3XML.element("Prefix", encode(prefix))
            + S3XML.element("MaxUploads", String(limit))
            + S3XML.element("IsTruncated", page.count < uploads.count ? "true" : "false")
        if let type = call.query("encoding-type") { text += S3XML.element("EncodingType", type) }
        if page.count < uploads.count, let last = page.last {
            text += S3XML.element("NextKeyMarker", encode(last.upload.key))
            text += S3XML.element("NextUploadIdMarker", last.id)
        }
        for entry in page {
            text +=
                "<Upload>" + S3XML.element("Key", encode(entry.upload.key))
                + S3XML.element("UploadId", entry.id) + owner
                + S3XML.element("StorageClass", entry.upload.head.storageClass ?? "STANDARD")
                + S3XML.element("Initiated", entry.upload.begun.rfc3339(.milliseconds))
                + "</Upload>"
        }
        return .xml(S3XML.root("ListMultipartUploadsResult", text))
    }

    func listParts(_ call: S3Call, _ key: String) throws(S3Failure) -> SimulatorAnswer {
        let limit = try limit(call, "max-parts")
        let (id, upload) = try upload(call, key)
        let marker = call.query("part-number-marker").flatMap { Int($0) } ?? 0
        let parts = upload.parts.filter { $0.key > marker }.sorted { $0.key < $1.key }
        let page = parts.prefix(limit)
        var text =
            S3XML.element("Bucket", Self.bucket) + S3XML.element("Key", key)
            + S3XML.element("UploadId", id)
            + S3XML.element("PartNumberMarker", String(marker))
            + S3XML.element("MaxParts", String(limit))
            + S3XML.element("IsTruncated", page.count < parts.count ? "true" : "false")
        if let last = page.last {
            text += S3XML.element("NextPartNumberMarker", String(last.key))
        }
        for (number, part) in page {
            text +=
                "<Part>" + S3XML.element("PartNumber", String(number))
                + S3XML.element("LastModified", part.time.rfc3339(.milliseconds))
                + S3XML.element("ETag", "\"\(part.content.md5)\"")
                + S3XML.element("Size", String(part.content.size)) + "</Part>"
        }
        return .xml(S3XML.root("ListPartsResult", text + owner))
    }
}
