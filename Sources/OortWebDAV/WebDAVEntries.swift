import Foundation
import OortModel
import OortTransport

/// Makes entries of what servers report about resources.
struct WebDAVEntries: Sendable {
    let address: WebDAVAddress
    let dialect: WebDAVDialect
    let abilities: WebDAVAbilities
    /// How long after a change a folder's tag may not show another one.
    var folderYouth = Duration.zero

    /// A folder's answer, sorted: the folder itself, and what lies in it.
    struct Sorted {
        /// The response for the folder or file that was asked for; nil where there was none.
        var own: DAVResponse?
        /// What lies in it, by name, no name twice.
        var children: [(name: String, response: DAVResponse)] = []
        /// Whether something has a name that could not be asked for again.
        var holdsUnnamed = false
    }

    /// The properties that a listing asks for.
    var listingProperties: [XMLName] {
        var names: [XMLName] = [
            .dav("resourcetype"), .dav("getetag"), .dav("getlastmodified"),
            .dav("getcontentlength"), .dav("getcontenttype"),
        ]
        guard dialect.isCloud else { return names }
        names += [
            .owncloud("id"), .owncloud("fileid"), .owncloud("permissions"),
            .owncloud("checksums"), .owncloud("owner-display-name"),
        ]
        if dialect == .infinitescale { names.append(.owncloud("has-preview")) }
        guard dialect == .nextcloud else { return names }
        return names + [
            .nextcloud("mount-type"), .nextcloud("is-mount-root"), .nextcloud("is-federated"),
            .nextcloud("creation_time"), .nextcloud("has-preview"), .nextcloud("is-encrypted"),
        ]
    }

    /// The properties that say whether, and with whom, the person shares an item, and which tags it has.
    ///
    /// For a listing the server looks up all of a folder's shares at once, and all of its tags; for one item it
    /// looks up each kind of share (nextcloud/server, `SharesPlugin.php`, `SystemTagPlugin.php`). So they are
    /// not asked of the root, which every look at the account asks for and of which nothing shows them.
    ///
    /// The tags of OpenCloud and Infinite Scale are not asked for: the server writes them into its answer as
    /// they are, and one with `&` would make all of a folder's listing unreadable (reva, `propfind.go`).
    var propertiesOfPeople: [XMLName] {
        switch dialect {
        case .plain: []
        case .owncloud10, .infinitescale: [.owncloud("share-types")]
        case .nextcloud:
            [.owncloud("share-types"), .nextcloud("sharees"), .nextcloud("system-tags")]
        }
    }

    /// A property of a Nextcloud's root, by which an administrator announces that a backup was restored
    /// (`occ maintenance:data-fingerprint`).
    static let fingerprint = XMLName.owncloud("data-fingerprint")

    // MARK: Places

    /// Sorts an answer by its places; what lies elsewhere is left out.
    func sorted(_ responses: [DAVResponse], of path: RemotePath) -> Sorted {
        let own = address.segments(of: path)
        var result = Sorted()
        var seen: Set<ExactText> = []
        for response in responses {
            guard let names = PercentEncoding.names(ofReference: response.href) else {
                result.holdsUnnamed = true
                continue
            }
            guard names.count - own.count == 0 || names.count - own.count == 1,
                isSame(names.prefix(own.count), as: own, below: address.files.count)
            else { continue }
            guard names.count > own.count, let name = names.last else {
                // A server that cannot write a name may leave it out: an item in the folder then has the
                // folder's own place.
                if result.own != nil { result.holdsUnnamed = true }
                result.own = result.own ?? response
                continue
            }
            if seen.insert(ExactText(name)).inserted { result.children.append((name, response)) }
        }
        return result
    }

    /// Whether an answer is about another name in the same folder: a server that misreads a name answers
    /// about the item that it takes it for.
    func isOfAnotherName(_ responses: [DAVResponse], than path: RemotePath) -> Bool {
        let own = address.segments(of: path)
        guard dialect == .plain, path != .root, let response = responses.first,
            let names = PercentEncoding.names(ofReference: response.href),
            names.count == own.count, let name = names.last, let asked = own.last
        else { return false }
        return isSame(names.dropLast(), as: own.dropLast(), below: address.files.count)
            && name != asked
    }

    /// The prefix of an account may come back in another case (a person's key at Nextcloud), and a
    /// name in another normal form.
    private func isSame(
        _ names: ArraySlice<String>,
        as own: [String],
        below prefix: Int
    ) -> Bool {
        zip(names, own).enumerated().allSatisfy { index, pair in
            pair.0 == pair.1
                || index < prefix && pair.0.lowercased() == pair.1.lowercased()
        }
    }

    // MARK: Properties

    /// Whether a resource is a folder; nil where the server did not say.
    static func isFolder(_ response: DAVResponse) -> Bool? {
        guard let type = response.properties[.dav("resourcetype")] else { return nil }
        return type.child(.dav("collection")) != nil
    }

    /// A tag without what proxies and servers put around it; nil where there is none.
    static func tag(_ text: String?) -> String? {
        guard var tag = text?.trimmed[...] else { return nil }
        func dropEnding() {
            for ending in ["--gzip", "-gzip", ";gzip"] {
                if let bare = tag.dropping(ending: ending) { tag = bare }
            }
        }
        if let strong = tag.dropping(beginning: "W/") { tag = strong }
        dropEnding()
        if let inner = tag.dropping(beginning: "\""), let bare = inner.dropping(ending: "\"") {
            tag = bare
        }
        dropEnding()
        return tag.isEmpty ? nil : String(tag)
    }

    /// A file's revision: its tag in quotes, or its size and time where it has none.
    static func revision(tag: String?, size: Int64, time: Timestamp?) -> Revision {
        if let tag { return Revision("\"\(tag)\"") }
        return Revision("\(size).\(time?.seconds ?? 0)")
    }

    /// The revision of a file whose tag follows from its time alone: `"TAG" SIZE SHA1`.
    static func revision(tag: String, size: Int64, hash: ContentHash?) -> Revision {
        Revision("\"\(tag)\" \(size) \(hash?.value ?? "-")")
    }

    /// The tag of a revision; nil of one that is made of size and time.
    static func tag(of revision: Revision) -> String? {
        guard let inner = revision.rawValue.dropping(beginning: "\""),
            let (tag, _) = inner.cut(atLast: "\"")
        else { return nil }
        return String(tag)
    }

    /// The size and the SHA-1 of a revision that has them beside its tag.
    static func content(of revision: Revision) -> (size: Int64, hash: String?)? {
        guard let (_, rest) = revision.rawValue.cut(atLast: "\""), rest.begins(with: " "),
            let (size, hash) = rest.dropFirst().cut(atFirst: " "), let bytes = Int64(size)
        else { return nil }
        return (bytes, hash == "-" ? nil : String(hash))
    }

    /// The entry that a response describes; nil where the server reported too little: what is known of the
    /// place then stays.
    func entry(_ response: DAVResponse, name: String, head: HTTPResponseHead) -> PlaceEntry? {
        guard response.isSound, let isFolder = Self.isFolder(response) else { return nil }
        return isFolder
            ? folder(response, name: name) : file(response, name: name, head: head)
    }

    private func file(
        _ response: DAVResponse,
        name: String,
        head: HTTPResponseHead
    ) -> PlaceEntry? {
        guard let text = response.text(.dav("getcontentlength")), let number = Int64(text),
            let size = ReportedSize(bytes: number)?.bytes
        else { return nil }
        let time = response.text(.dav("getlastmodified")).flatMap { HTTPDate.parse($0) }
        let tag = Self.tag(response.text(.dav("getetag")))
        if dialect.isCloud, tag == nil { return nil }
        var entry = PlaceEntry.file(
            name,
            size: size,
            revision: Self.revision(tag: tag, size: size, time: time),
            modifiedTime: time
        )
        if dialect == .plain, tag == nil || abilities.tags != .fine, let time {
            let now = head.date ?? .now
            entry.isYoung = now.seconds - time.seconds < 2
        }
        if dialect == .infinitescale, let tag {
            entry.revision = Self.revision(tag: tag, size: size, hash: CloudItem(response).hash)
        }
        entry.mimeType = response.text(.dav("getcontenttype"))
        if dialect.isCloud { addCloud(response, to: &entry) } else { addPlain(to: &entry) }
        return entry
    }

    private func folder(_ response: DAVResponse, name: String) -> PlaceEntry? {
        var entry = PlaceEntry.folder(name)
        entry.modifiedTime = response.text(.dav("getlastmodified")).flatMap { HTTPDate.parse($0) }
        guard dialect.isCloud else {
            addPlain(to: &entry)
            return entry
        }
        // A storage that is down is listed with an empty tag.
        guard let tag = Self.tag(response.text(.dav("getetag"))) else { return nil }
        if CloudItem(response).stampHolds(dialect) { entry.stamp = FolderStamp(tag) }
        addCloud(response, to: &entry)
        return entry
    }

    private func addPlain(to entry: inout PlaceEntry) {
        if abilities.isReadOnly { entry.permissions = .read }
        entry.isOwn = true
    }

    private func addCloud(_ response: DAVResponse, to entry: inout PlaceEntry) {
        let item = CloudItem(response)
        // In one space an id is at one place, whoever shares it.
        entry.key = dialect == .infinitescale ? item.id : item.key
        entry.mount = item.mount
        entry.permissions = item.permissions(entry.kind, dialect: dialect)
        entry.isOwn = item.isOwn && address.space?.isPersonal != false
        entry.owner = item.owner
        entry.isShared = item.isShared
        entry.sharedWith = item.sharedWith
        entry.tags = item.tags
        guard entry.kind == .file else { return }
        entry.hash = dialect == .nextcloud ? nil : item.hash
        entry.createdTime = item.createdTime
        entry.hasThumbnail = dialect == .owncloud10 ? nil : item.hasPreview
    }

    /// Whether a folder changed so recently that its tag may hide another change below it.
    ///
    /// Infinite Scale passes a change on to the folders above later and one by one; a change that reaches a
    /// folder after a younger one leaves the folder's tag as it is. Every five minutes it looks for changes
    /// that got stuck, and continues those that are three minutes old: eight minutes late, at the change's
    /// own time (reva, `pkg/storage/pkg/decomposedfs/tree/propagator/async.go`).
    func isYoung(_ entry: PlaceEntry, head: HTTPResponseHead) -> Bool {
        guard dialect == .infinitescale, let time = entry.modifiedTime else { return false }
        let now = head.date ?? .now
        return now.seconds - time.seconds < folderYouth.components.seconds
    }
}
