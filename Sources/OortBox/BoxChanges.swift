import Foundation
public import OortModel
import OortTransport

extension BoxProvider {
    /// Folders that are listed side by side.
    private static let listedAtOnce = 6

    public func changes(since cursor: Cursor?) async throws(ProviderError) -> ChangePage {
        guard let cursor else { return try await beginEnumeration() }
        let place = try BoxCursor(cursor)
        try place.check(now: Timestamp.now.seconds)
        return place.listings.isEmpty
            ? try await readEvents(place) : try await continueListing(place)
    }

    /// The stream's end first, so that nothing that happens while we list is missed.
    private func beginEnumeration() async throws(ProviderError) -> ChangePage {
        let start = try await api.events(from: "now")
        var place = BoxCursor(
            position: start.next_stream_position.text,
            now: Timestamp.now.seconds
        )
        place.listings = [.init(folder: BoxID.root.id)]
        place.isEnumeration = true
        return try await continueListing(place)
    }

    // MARK: Listing

    private struct Listed: Sendable {
        var listing: BoxCursor.Listing
        var page: Result<BoxWire.Listing, ProviderError>
    }

    /// Lists some of the folders that are left, the last ones first: by depth, so that only their
    /// siblings are carried along.
    private func continueListing(_ cursor: BoxCursor) async throws(ProviderError) -> ChangePage {
        var place = cursor
        let some = Array(place.listings.suffix(Self.listedAtOnce))
        place.listings.removeLast(some.count)
        let me = try await me()
        var changes: [Change] = []
        for listed in await list(some) {
            var listing = listed.listing
            let page: BoxWire.Listing
            do throws(ProviderError) { page = try listed.page.get() } catch {
                switch error.kind {
                // It went, or we were shut out: the events tell.
                case .notFound, .noPermission: continue
                // The marker has grown old.
                case .badRequest where listing.marker != nil:
                    listing.marker = nil
                    place.listings.append(listing)
                    continue
                default: throw error
                }
            }
            let above = BoxID(kind: .folder, id: listing.folder)
            for entry in page.entries ?? [] {
                guard !entry.isGone, let item = entry.item(me: me, listedIn: above) else {
                    continue
                }
                changes.append(.changed(item))
                if item.kind == .folder, listing.isDeep {
                    place.listings.append(.init(folder: entry.id.text))
                }
            }
            if let next = page.next {
                guard next != listing.marker else {
                    throw ProviderError(.malformedAnswer, detail: "a page leads to itself")
                }
                listing.marker = next
                place.listings.append(listing)
            }
        }
        let isEnumeration = cursor.isEnumeration
        if place.listings.isEmpty { place.isEnumeration = false }
        return ChangePage(
            changes: changes,
            cursor: try place.cursor(),
            // An enumeration's last page says so by having nothing after it.
            hasMore: !(isEnumeration && place.listings.isEmpty),
            isEnumeration: isEnumeration
        )
    }

    private func list(_ listings: [BoxCursor.Listing]) async -> [Listed] {
        await withTaskGroup(of: (Int, Listed).self) { group in
            for (index, listing) in listings.enumerated() {
                group.addTask {
                    do throws(ProviderError) {
                        try await self.walkPace.take()
                        let page = try await self.api.list(listing.folder, marker: listing.marker)
                        return (index, Listed(listing: listing, page: .success(page)))
                    } catch {
                        return (index, Listed(listing: listing, page: .failure(error)))
                    }
                }
            }
            var results: [(Int, Listed)] = []
            for await result in group { results.append(result) }
            return results.sorted { $0.0 < $1.0 }.map(\.1)
        }
    }

    // MARK: Events

    /// Reads one page of the stream: there may be more as long as it brings what was not seen.
    private func readEvents(_ cursor: BoxCursor) async throws(ProviderError) -> ChangePage {
        var place = cursor
        let page = try await api.events(from: place.position)
        let fresh = place.unseen(page.entries ?? [])
        var changes: [Change] = []
        for event in Self.latest(fresh) {
            changes += try await take(event, into: &place)
        }
        place.position = page.next_stream_position.text
        let now = Timestamp.now.seconds
        if place != cursor || now.addingSaturating(-place.read) > 24 * 3600 { place.read = now }
        if !fresh.isEmpty { memory.mayHaveMore = true }
        return ChangePage(
            changes: changes,
            cursor: try place.cursor(),
            hasMore: !fresh.isEmpty || !place.listings.isEmpty,
            isEnumeration: false
        )
    }

    /// The events in the order of what they tell of each item: they come in none.
    private static func latest(_ events: [BoxWire.Event]) -> [BoxWire.Event] {
        func sequence(_ event: BoxWire.Event) -> Int64 {
            event.source?.sequence_id.flatMap { Int64($0.text) } ?? .max
        }
        return events.enumerated()
            .sorted { (sequence($0.element), $0.offset) < (sequence($1.element), $1.offset) }
            .map(\.element)
    }

    /// One event in canonical terms.
    private func take(
        _ event: BoxWire.Event,
        into place: inout BoxCursor
    ) async throws(ProviderError) -> [Change] {
        switch event.event_type {
        case "GROUP_ADD_USER", "GROUP_REMOVE_USER":
            // What we may see changed, and nothing says where.
            throw ProviderError(.cursorLost, detail: "the groups of the account changed")
        case "COLLAB_ADD_COLLABORATOR", "COLLAB_INVITE_COLLABORATOR", "COLLABORATION_ACCEPT",
            "COLLAB_ROLE_CHANGE", "COLLAB_REMOVE_COLLABORATOR":
            return try await takeSharing(event, into: &place)
        case "ITEM_CREATE", "ITEM_UPLOAD", "ITEM_COPY", "ITEM_MOVE", "ITEM_RENAME", "ITEM_MODIFY",
            "ITEM_MAKE_CURRENT_VERSION", "ITEM_UNDELETE_VIA_TRASH", "ITEM_TRASH", "ITEM_SYNC",
            "ITEM_UNSYNC", "LOCK_CREATE", "LOCK_DESTROY":
            break
        default: return []
        }
        // Without a source it is gone for good, and was trashed before.
        guard let source = event.source, let id = source.boxID, id != .root,
            place.isNews(of: id, sequence: source.sequence_id?.text)
        else { return [] }
        if source.isGone { return [.removed(id.itemID)] }
        let me = try await me()
        var item = source.item(me: me)
        let isCertain =
            // An event of a deletion with an item that is there is a late one, or the item came back.
            event.event_type != "ITEM_TRASH"
            // What is ours we may change.
            && (source.permissions != nil || source.owned_by?.id.text == me)
        if item == nil || !isCertain { item = try await present(id) }
        guard let item else { return [.removed(id.itemID)] }
        let brings = ["ITEM_COPY", "ITEM_UNDELETE_VIA_TRASH"].contains(event.event_type)
        // A folder's event is the only one of all that came with it.
        if brings, id.kind == .folder { place.listings.append(.init(folder: id.id)) }
        return [.changed(item)]
    }

    /// What others share with us changed: the folder is there, with all below it, or is not.
    private func takeSharing(
        _ event: BoxWire.Event,
        into place: inout BoxCursor
    ) async throws(ProviderError) -> [Change] {
        guard let id = event.source?.boxID, id != .root else {
            throw ProviderError(.cursorLost, detail: "something is shared that is not named")
        }
        guard let item = try await present(id) else { return [.removed(id.itemID)] }
        place.listings.append(.init(folder: BoxID.root.id, isDeep: false))
        if id.kind == .folder { place.listings.append(.init(folder: id.id)) }
        return [.changed(item)]
    }

    /// The item as it is now; nil where it is positively not there.
    private func present(_ id: BoxID) async throws(ProviderError) -> Item? {
        do throws(ProviderError) {
            let wire = try await api.item(id)
            return wire.isGone ? nil : try await item(wire)
        } catch {
            guard error.kind == .notFound else { throw error }
            return nil
        }
    }
}
