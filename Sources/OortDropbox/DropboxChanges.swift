public import OortModel

/// The change feed: one recursive listing whose cursor goes on as the feed.
extension DropboxProvider {
    /// A cursor says whether it lies inside of the enumeration or behind it.
    private enum Place {
        case enumeration(String)
        case feed(String)

        init?(_ cursor: Cursor) {
            let text = cursor.rawValue
            if text.hasPrefix("e:") {
                self = .enumeration(String(text.dropFirst(2)))
            } else if text.hasPrefix("f:") {
                self = .feed(String(text.dropFirst(2)))
            } else {
                return nil
            }
        }

        var service: String {
            switch self {
            case .enumeration(let text), .feed(let text): text
            }
        }

        var cursor: Cursor {
            switch self {
            case .enumeration(let text): Cursor("e:" + text)
            case .feed(let text): Cursor("f:" + text)
            }
        }
    }

    public func changes(since cursor: Cursor?) async throws(ProviderError) -> ChangePage {
        let listing: DropboxWire.Listing
        let isEnumeration: Bool
        if let cursor {
            let place = try place(cursor)
            if case .enumeration = place { isEnumeration = true } else { isEnumeration = false }
            do throws(ProviderError) {
                listing = try await api.call(
                    "files/list_folder/continue",
                    DropboxWire.CursorArgument(cursor: place.service)
                )
            } catch { throw error.asOfCursor }
        } else {
            isEnumeration = true
            listing = try await api.call(
                "files/list_folder",
                DropboxWire.ListFolder(path: "", recursive: true)
            )
        }
        let place: Place =
            isEnumeration && listing.has_more
            ? .enumeration(listing.cursor) : .feed(listing.cursor)
        return ChangePage(
            changes: listing.entries.compactMap(Self.change),
            cursor: place.cursor,
            hasMore: listing.has_more,
            isEnumeration: isEnumeration
        )
    }

    private func place(_ cursor: Cursor) throws(ProviderError) -> Place {
        guard let place = Place(cursor) else {
            throw ProviderError(.cursorLost, detail: "not a cursor of this provider")
        }
        return place
    }

    /// An entry of an unknown kind is ignored.
    private static func change(_ metadata: DropboxWire.Metadata) -> Change? {
        switch metadata.tag {
        case "deleted": RemotePath(dropbox: metadata).map { .removedPath($0) }
        case "file", "folder": Item(metadata).map { .changed($0) }
        default: nil
        }
    }

    public func waitForChanges(
        since cursor: Cursor,
        atMost limit: Duration
    ) async throws(ProviderError) -> FeedNews {
        let place = try place(cursor)
        guard case .feed = place else { return .changed }
        // Dropbox takes 30 to 480 seconds; a shorter limit ends the poll from this side.
        let seconds = Int(min(max(limit.components.seconds, 30), 480))
        let poll = DropboxWire.LongPoll(cursor: place.service, timeout: seconds)
        let outcome = await withTaskGroup(of: Result<FeedNews, ProviderError>.self) {
            [api, clock] group in
            group.addTask {
                do throws(ProviderError) {
                    let result = try await api.poll(poll)
                    return .success(
                        result.changes
                            ? .changed
                            : .quiet(
                                backoff: result.backoff.map { Duration(reportedSeconds: $0) }
                            )
                    )
                } catch { return .failure(error) }
            }
            group.addTask {
                try? await clock.sleep(for: limit)
                return .success(.quiet(backoff: nil))
            }
            let first = await group.next() ?? .success(.quiet(backoff: nil))
            group.cancelAll()
            return first
        }
        guard !Task.isCancelled else { throw ProviderError(.cancelled, detail: "cancelled") }
        return try outcome.get()
    }

    public func children(
        of folder: ItemReference,
        page: PageToken?
    ) async throws(ProviderError) -> ListingPage {
        let listing: DropboxWire.Listing
        if let page {
            listing = try await api.call(
                "files/list_folder/continue",
                DropboxWire.CursorArgument(cursor: page.rawValue)
            )
        } else {
            listing = try await api.call(
                "files/list_folder",
                DropboxWire.ListFolder(path: address(folder))
            )
        }
        return ListingPage(
            items: listing.entries.compactMap(Item.init),
            next: listing.has_more ? PageToken(listing.cursor) : nil
        )
    }
}
