import OortModel
import Synchronization

extension S3Simulator {
    /// What became of a deletion.
    private struct Deletion {
        /// The version that was deleted for good, or the mark that was set.
        var versionID: String?
        var isMark = false
    }

    func delete(_ call: S3Call, _ key: String) throws(S3Failure) -> SimulatorAnswer {
        let deletion = try delete(
            key,
            version: call.query("versionId"),
            condition: call.header("If-Match")
        )
        var headers: [(name: String, value: String)] = []
        if let id = deletion.versionID { headers.append(("x-amz-version-id", id)) }
        if deletion.isMark { headers.append(("x-amz-delete-marker", "true")) }
        return SimulatorAnswer(status: 204, headers: headers)
    }

    private func delete(
        _ key: String,
        version id: String?,
        condition: String?
    ) throws(S3Failure) -> Deletion {
        let keepsVersions = habits.keepsVersions
        return try withIndex { (tree, index) throws(S3Failure) -> Deletion in
            let object = tree.object(at: key)
            try checkWritable(key, object, tree)
            if let condition {
                guard let object else { throw .noSuchKey(key) }
                guard Self.matches(condition, object.tag) else { throw .unmet("If-Match") }
            }
            guard keepsVersions else {
                tree.removeObject(at: key)
                return Deletion()
            }
            guard let id else { return Deletion(versionID: tree.markDeleted(key), isMark: true) }
            let itemIDs = index.itemIDs(of: key)
            // What is not there is deleted all the same.
            guard let version = tree.history(of: key, itemIDs).first(where: { $0.id == id }) else {
                return Deletion(versionID: id)
            }
            tree.remove(version, among: itemIDs)
            return Deletion(versionID: id, isMark: version.object == nil)
        }
    }

    func deleteMany(_ call: S3Call, _ payload: S3Payload) throws(S3Failure) -> SimulatorAnswer {
        guard call.header("Content-MD5") != nil || !payload.checksums.isEmpty else {
            throw S3Failure(
                400,
                "InvalidRequest",
                "Missing required header for this request: Content-MD5 OR x-amz-checksum-*"
            )
        }
        guard let text = String(validating: payload.bytes, as: UTF8.self) else {
            throw .malformedXML
        }
        let objects = S3XML.contents(of: "Object", in: text[...])
        guard (1...1000).contains(objects.count) else { throw .malformedXML }
        let isQuiet = S3XML.text(of: "Quiet", in: text[...]) == "true"
        var result = ""
        for object in objects {
            guard let key = S3XML.text(of: "Key", in: object), !key.isEmpty else {
                throw .malformedXML
            }
            let id = S3XML.text(of: "VersionId", in: object)
            var words = S3XML.element("Key", key)
            if let id { words += S3XML.element("VersionId", id) }
            do throws(S3Failure) {
                let deletion = try delete(
                    key,
                    version: id,
                    condition: S3XML.text(of: "ETag", in: object)
                )
                guard !isQuiet else { continue }
                if deletion.isMark {
                    words += S3XML.element("DeleteMarker", "true")
                    words += S3XML.element("DeleteMarkerVersionId", deletion.versionID ?? "")
                }
                result += "<Deleted>\(words)</Deleted>"
            } catch {
                words += S3XML.element("Code", error.code)
                words += S3XML.element("Message", error.message)
                result += "<Error>\(words)</Error>"
            }
        }
        return .xml(S3XML.root("DeleteResult", result))
    }
}
