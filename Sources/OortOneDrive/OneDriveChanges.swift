import Foundation
public import OortModel
import OortTransport

/// The place in the change feed, as kept in a `Cursor`: the delta links of the account's own drive
/// and of each folder that was added from another drive, which are read one after the other.
struct OneDriveCursor: Codable, Sendable {
    /// One drive's, or one folder's, delta.
    struct Feed: Codable, Sendable, Equatable {
        /// The folder whose delta it is; for the first feed the drive's root.
        var root: DriveAddress
        /// The shortcut that shows it; nil for the account's own drive.
        var shortcut: DriveAddress?
        /// The service's link, verbatim: the next page, or the next time; nil to begin.
        var link: String?
    }

    /// The cursor's own format.
    var format = 1
    /// Whether the run that is under way, or the last one, named everything there is.
    var isEnumerating: Bool
    /// When the enumeration began, in seconds since 1970.
    var enumerated: Int64
    /// Which feed is read next; 0 between two runs.
    var position = 0
    /// The account's own drive first.
    var feeds: [Feed]

    init(enumerating root: DriveAddress, at time: Int64) {
        isEnumerating = true
        enumerated = time
        feeds = [Feed(root: root)]
    }

    /// - Throws: `.cursorLost` when it is not one of ours.
    init(_ cursor: Cursor) throws(ProviderError) {
        guard
            let decoded = try? JSONDecoder().decode(
                OneDriveCursor.self,
                from: Data(cursor.rawValue.utf8)
            ),
            decoded.format == 1, decoded.feeds.indices.contains(decoded.position)
        else { throw ProviderError(.cursorLost, detail: "not a cursor of this provider") }
        self = decoded
    }

    var cursor: Cursor {
        get throws(ProviderError) {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            guard let data = try? encoder.encode(self) else {
                throw ProviderError(.malformedAnswer, detail: "a link that JSON cannot hold")
            }
            return Cursor(String(decoding: data, as: UTF8.self))
        }
    }

    /// The shortcut whose entry has this address.
    func shortcut(at entry: DriveAddress) -> OneDriveItemID? {
        feeds.first { $0.shortcut == entry }
            .map { OneDriveItemID(entry: entry, target: $0.root) }
    }

    /// Goes on behind a page; returns whether more can be read at once.
    mutating func advance(nextLink: String?, deltaLink: String?) -> Bool {
        feeds[position].link = nextLink ?? deltaLink ?? feeds[position].link
        if nextLink != nil { return true }
        position += 1
        guard position == feeds.count else { return true }
        position = 0
        return false
    }
}

extension OneDriveProvider {
    /// Deletions are missing in the feed now and then (onedrive-api-docs issue 1927), so that once
    /// a day the whole account is enumerated again.
    static let enumerationLife: Int64 = 24 * 3600

    public func changes(since cursor: Cursor?) async throws(ProviderError) -> ChangePage {
        var place: OneDriveCursor
        if let cursor {
            place = try OneDriveCursor(cursor)
            for feed in place.feeds {
                guard let entry = feed.shortcut else { continue }
                memory.learn(OneDriveItemID(entry: entry, target: feed.root))
            }
            let isBetweenRuns = place.position == 0 && !place.isEnumerating
            if isBetweenRuns, now().seconds - place.enumerated > Self.enumerationLife {
                throw ProviderError(
                    .cursorLost,
                    detail: "the last enumeration is more than a day old"
                )
            }
        } else {
            place = OneDriveCursor(enumerating: try await drive().root, at: now().seconds)
        }
        return try await page(at: place)
    }

    public func waitForChanges(
        since cursor: Cursor,
        atMost limit: Duration
    ) async throws(ProviderError) -> FeedNews {
        try await pause(min(limit, traits.pollInterval))
        return .changed
    }

    private func page(at start: OneDriveCursor) async throws(ProviderError) -> ChangePage {
        var place = start
        let feed = place.feeds[place.position]
        let isEnumeration = place.isEnumerating
        let answer: ItemPageWire
        do throws(ProviderError) {
            answer = try await api.send(
                try request(for: feed),
                for: ItemPageWire.self,
                about: .feed
            )
        } catch  where feed.shortcut != nil && Self.isShareUnreadable(error) {
            // Another person's folder that is no longer shared, or is on a kind of drive that has only a
            // feed of its root. The account's own feed must not stand still for that.
            answer = ItemPageWire(value: [], nextLink: nil, deltaLink: nil)
        }
        guard answer.nextLink != nil || answer.deltaLink != nil || feed.shortcut != nil else {
            throw ProviderError(.malformedAnswer, detail: "a page of the feed without a link")
        }
        var changes: [Change] = []
        for wire in answer.value {
            if let change = change(wire, in: feed, place: &place) { changes.append(change) }
        }
        let hasMore = place.advance(nextLink: answer.nextLink, deltaLink: answer.deltaLink)
        if !hasMore { place.isEnumerating = false }
        return ChangePage(
            changes: changes,
            cursor: try place.cursor,
            hasMore: hasMore,
            isEnumeration: isEnumeration
        )
    }

    private func request(for feed: OneDriveCursor.Feed) throws(ProviderError) -> HTTPRequest {
        // Every page would begin with all folders above what changed.
        let prefer = (
            name: "Prefer", value: "deltaExcludeParent, \(OneDriveAPI.sharedFolders.value)"
        )
        if let link = feed.link { return try api.request(following: link, headers: [prefer]) }
        let path =
            feed.shortcut == nil
            ? "/drives/\(PercentEncoding.segment(feed.root.drive))/root/delta"
            : "\(feed.root.path)/delta"
        return api.request(
            "GET",
            path,
            query: [("$top", "1000"), ("$select", OneDriveAPI.feedFields)],
            headers: [prefer]
        )
    }

    private static func isShareUnreadable(_ error: ProviderError) -> Bool {
        switch error.kind {
        case .notFound, .noPermission, .unsupported, .badRequest: true
        default: false
        }
    }

    /// One entry of the feed; nil for the roots, which every page begins with.
    private func change(
        _ wire: DriveItemWire,
        in feed: OneDriveCursor.Feed,
        place: inout OneDriveCursor
    ) -> Change? {
        guard let id = wire.id else { return nil }
        let drive = wire.parentReference?.driveId ?? feed.root.drive
        let address = DriveAddress(drive: drive, item: id)
        guard wire.root == nil, address != feed.root else { return nil }
        if wire.deleted != nil {
            // A tombstone names the entry only, and a shortcut's id names its target too.
            guard let shortcut = place.shortcut(at: address) else {
                return .removed(OneDriveItemID(address).itemID)
            }
            place.feeds.removeAll { $0.shortcut == address }
            memory.forget(shortcut)
            return .removed(shortcut.itemID)
        }
        guard let item = OneDriveItems.item(wire, drive: drive, memory: memory) else { return nil }
        if item.kind == .folder, let known = try? OneDriveItemID(item.id), known.isShortcut,
            feed.shortcut == nil, !place.feeds.contains(where: { $0.root == known.target })
        {
            place.feeds.append(.init(root: known.target, shortcut: known.entry))
        }
        return .changed(item)
    }
}
