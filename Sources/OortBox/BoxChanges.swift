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
        // What was reported before the cursor was lost is reported again, and is no news then either.
        place.seen = memory.seenBefore
        place.listings = [.init(folder: top.id)]
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
        var changes: [Change] = []
        for listed in await list(some) {
            var listing = listed.listing
            let above = BoxID(kind: .folder, id: listing.folder)
            let page: BoxWire.Listing
            do throws(ProviderError) { page = try listed.page.get() } catch {
                changes += try await refused(listing, by: error, in: &place)
                continue
            }
            let entries = try await entries(of: page, in: above)
            for refusal in entries.refusals {
                place.missed(refusal.of, now: Timestamp.now.seconds)
            }
            var below: [BoxCursor.Listing] = []
            for item in entries.items {
                changes.append(.changed(item))
                if item.kind == .folder, listing.isDeep {
                    below.append(.init(folder: try BoxID(item.id).id))
                }
            }
            guard let next = page.next else {
                place.listings += below
                continue
            }
            guard next != listing.marker else {
                throw ProviderError(.malformedAnswer, detail: "a page leads to itself")
            }
            listing.marker = next
            // What a wide folder holds is carried in parts, unless its marker did not outlive that.
            let waiting = place.listings.count + below.count
            let rests = waiting > BoxCursor.manyListings && !listing.isAnew
            place.listings += rests ? [listing] + below : below + [listing]
        }
        // An enumeration is whole when the events that came meanwhile are read, too: what was moved from
        // where the walk had not been to where it had is named by them alone.
        return try page(changes, from: cursor, to: place, hasMore: true)
    }

    /// A folder was not listed: what that says, and whether it is listed once more.
    ///
    /// Returns what the folder is now, if it can be seen.
    private func refused(
        _ listing: BoxCursor.Listing,
        by error: ProviderError,
        in place: inout BoxCursor
    ) async throws(ProviderError) -> [Change] {
        var again = listing
        let folder = BoxID(kind: .folder, id: listing.folder)
        let now = Timestamp.now.seconds
        switch error.kind {
        // The marker has grown old.
        case .badRequest where listing.marker != nil:
            again.marker = nil
            again.isAnew = true
            place.listings.append(again)
        case .noPermission where folder != top, .notFound where folder != top:
            switch try await presence(of: folder) {
            // The events will report it.
            case .gone: break
            case .there where error.kind == .notFound && listing.misses < Self.mostMisses:
                try await api.pause(.seconds(1 << listing.misses))
                again.misses += 1
                place.listings.append(again)
            // It can be seen, but what lies in it cannot.
            case .there(let item):
                place.missed(folder, now: now)
                return [.changed(item)]
            case .unclear: place.missed(folder, now: now)
            }
        default: throw folder == top && !isWhole ? error.asOfAccountFolder : error
        }
        return []
    }

    /// How often a folder that is there is listed again, with growing rests, where Box has none.
    private static let mostMisses = 4

    /// A page that leads from one place to another.
    private func page(
        _ changes: [Change],
        from cursor: BoxCursor,
        to place: BoxCursor,
        hasMore: Bool
    ) throws(ProviderError) -> ChangePage {
        let untold = Set(place.untold).subtracting(cursor.untold)
        // A folder that may not be listed is reported as one that may not be read, by events, too.
        let missed = Set(place.untold)
        let told = changes.map { change -> Change in
            guard case .changed(var item) = change, item.kind == .folder,
                missed.contains(item.id.rawValue)
            else { return change }
            item.permissions.remove(.read)
            return .changed(item)
        }
        var place = place
        place.untold = place.untold.suffix(BoxCursor.untoldKept)
        var page = ChangePage(
            changes: told,
            cursor: try place.cursor(),
            hasMore: hasMore,
            isEnumeration: cursor.isEnumeration
        )
        page.untold = Set(untold.map { ItemID($0) })
        return page
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
    ///
    /// An enumeration ends where there is no more.
    private func readEvents(_ cursor: BoxCursor) async throws(ProviderError) -> ChangePage {
        var place = cursor
        let news: BoxWire.Events
        do throws(ProviderError) { news = try await api.events(from: place.position) } catch {
            throw error.asOfCursor
        }
        let fresh = place.unseen(news.entries ?? [])
        var changes: [Change] = []
        try await takeTop(fresh, into: &place)
        for event in Self.inOrder(fresh) {
            changes += try await take(event, into: &place)
        }
        let now = Timestamp.now.seconds
        for id in place.untoldDue(now: now) {
            changes += try await askAgain(for: try BoxID(id), in: &place)
        }
        place.position = news.next_stream_position.text
        memory.readStream(at: elapsed())
        if place != cursor || now.addingSaturating(-place.read) > 24 * 3600 { place.read = now }
        if !fresh.isEmpty { memory.heardEvents() }
        let hasMore = !fresh.isEmpty || !place.listings.isEmpty
        if !hasMore { place.isEnumeration = false }
        return try page(changes, from: cursor, to: place, hasMore: hasMore)
    }

    /// What could not be seen some time ago, as it is now.
    private func askAgain(
        for id: BoxID,
        in place: inout BoxCursor
    ) async throws(ProviderError) -> [Change] {
        guard id != top else {
            place.willList(top)
            return []
        }
        try await walkPace.take()
        switch try await presence(of: id) {
        case .gone: return [.removed(id.itemID)]
        case .unclear:
            place.missed(id, now: Timestamp.now.seconds)
            return []
        case .there(let item):
            if id.kind == .folder { place.willList(id) }
            return [.changed(item)]
        }
    }

    /// The events of each item by how often it had changed: they come in no order, and those of two items have none.
    private static func inOrder(_ events: [BoxWire.Event]) -> [BoxWire.Event] {
        func sequence(_ event: BoxWire.Event) -> Int64 {
            event.source?.item?.sequence_id.flatMap { Int64($0.text) } ?? .max
        }
        return events.enumerated()
            .sorted { (sequence($0.element), $0.offset) < (sequence($1.element), $1.offset) }
            .map(\.element)
    }

    /// Asks Box for the folder where the account begins, where a page of events may concern it.
    ///
    /// It goes and comes back with a folder above it, too. When it is back it is listed with all below, since
    /// Box sent no events of what happened in it meanwhile.
    private func takeTop(
        _ events: [BoxWire.Event],
        into place: inout BoxCursor
    ) async throws(ProviderError) {
        guard !isWhole else { return }
        func bringsBack(_ event: BoxWire.Event) -> Bool {
            let type = event.event_type ?? ""
            return event.source?.id?.kind == .folder
                && (type == "ITEM_UNDELETE_VIA_TRASH" || type.begins(with: "COLLAB"))
        }
        guard
            events.contains(where: {
                bringsBack($0) || $0.source?.item?.isGone == true || $0.source?.id == top
            })
        else { return }
        let above = try await requireTop().path_collection?.entries ?? []
        let line = Set(above.compactMap { $0.id?.text } + [top.id])
        let isBack = events.contains { event in
            bringsBack(event) && event.source?.id.map { line.contains($0.id) } == true
        }
        if isBack { place.willList(top) }
    }

    /// One event in canonical terms.
    private func take(
        _ event: BoxWire.Event,
        into place: inout BoxCursor
    ) async throws(ProviderError) -> [Change] {
        switch event.event_type {
        case "GROUP_ADD_USER", "GROUP_REMOVE_USER":
            // What we may see changed, and nothing says where.
            memory.remember(seen: place.seen)
            throw ProviderError(.cursorLost, detail: "the groups of the account changed")
        case "COLLAB_ADD_COLLABORATOR", "COLLAB_INVITE_COLLABORATOR", "COLLABORATION_ACCEPT",
            "COLLAB_ROLE_CHANGE", "COLLAB_REMOVE_COLLABORATOR":
            return try await takeSharing(event, into: &place)
        case "TAG_ITEM_CREATE":
            // An event says nothing of tags.
            guard let id = event.source?.id, id != top, id != .root else { return [] }
            return try await asItIs(id, in: &place)
        case "ITEM_CREATE", "ITEM_UPLOAD", "ITEM_COPY", "ITEM_MOVE", "ITEM_RENAME", "ITEM_MODIFY",
            "ITEM_MAKE_CURRENT_VERSION", "ITEM_UNDELETE_VIA_TRASH", "ITEM_TRASH", "ITEM_SYNC",
            "ITEM_UNSYNC", "LOCK_CREATE", "LOCK_DESTROY":
            break
        default: return []
        }
        // Without a source it is gone for good, and was trashed before.
        guard let id = event.source?.id, id != top, id != .root else { return [] }
        let source = event.source?.item
        let sequence = source?.sequence_id?.text
        // A folder's event is the only one for everything that came with it, and may come after another one
        // that reports the same state of the folder.
        if id.kind == .folder, source?.isGone != true, source.flatMap(isInside) != false,
            brings(event.event_type, id, sequence, place)
        {
            place.willList(id)
        }
        guard place.isNews(of: id, sequence: sequence) else { return [] }
        if let source, source.isGone || isInside(source) == false {
            return [.removed(id.itemID)]
        }
        // An event of a deletion with an item that is there is a late one, or the item came back.
        if let source, event.event_type != "ITEM_TRASH", isInside(source) == true,
            try await isCertain(source), let item = source.item(me: try await me())
        {
            return [.changed(item)]
        }
        return try await asItIs(id, in: &place)
    }

    /// Asks Box for an item.
    private func asItIs(
        _ id: BoxID,
        in place: inout BoxCursor
    ) async throws(ProviderError) -> [Change] {
        switch try await presence(of: id) {
        case .there(let item): return [.changed(item)]
        case .gone: return [.removed(id.itemID)]
        case .unclear:
            place.missed(id, now: Timestamp.now.seconds)
            return []
        }
    }

    /// Whether an event of a folder may be all that is reported of its contents.
    private func brings(
        _ type: String?,
        _ folder: BoxID,
        _ sequence: String?,
        _ place: BoxCursor
    ) -> Bool {
        switch type {
        case "ITEM_COPY", "ITEM_UNDELETE_VIA_TRASH": true
        // It may come from where we cannot see, or where an enumeration has not been yet. What was
        // moved from here was known here.
        case "ITEM_MOVE": place.isEnumeration || !memory.moved(folder, to: sequence)
        default: false
        }
    }

    /// Whether an event says all of its item: what it leaves out would be taken for removed, and an item
    /// without a folder for one of the root.
    private func isCertain(_ source: BoxWire.Item) async throws(ProviderError) -> Bool {
        guard source.parent != nil, source.description != nil,
            source.type != "file" || source.sha1 != nil
        else { return false }
        // What is ours we may change.
        if source.permissions != nil { return true }
        return source.owned_by?.id?.text == (try await me())
    }

    /// What others share with us changed: the folder is there, with all below it, or is not.
    private func takeSharing(
        _ event: BoxWire.Event,
        into place: inout BoxCursor
    ) async throws(ProviderError) -> [Change] {
        guard let id = event.source?.id, id != .root else {
            memory.remember(seen: place.seen)
            throw ProviderError(.cursorLost, detail: "something is shared that is not named")
        }
        guard id != top else { return [] }
        switch try await presence(of: id) {
        case .gone: return [.removed(id.itemID)]
        case .unclear:
            place.missed(id, now: Timestamp.now.seconds)
            return []
        case .there(let item):
            place.willList(top, isDeep: false)
            if id.kind == .folder { place.willList(id) }
            return [.changed(item)]
        }
    }

    private enum Presence {
        case there(Item)
        /// Positively not there, or outside of the account's tree.
        case gone
        /// Box does not let us see the item, or reports it in an unreadable form: what was known stays, and
        /// the stream goes on.
        case unclear
    }

    /// The item as it is now.
    private func presence(of id: BoxID) async throws(ProviderError) -> Presence {
        do throws(ProviderError) {
            let wire = try await api.item(id)
            guard !wire.isGone else {
                throw ProviderError(.notFound, detail: "Box has it in its trash")
            }
            switch isInside(wire) {
            case true?: return .there(try await item(wire))
            case false?: return .gone
            // Nothing says where it lies.
            case nil: return .unclear
            }
        } catch {
            switch error.kind {
            case .notFound:
                if !isWhole { try await requireTop() }
                return .gone
            case .noPermission, .malformedAnswer: return .unclear
            default: throw error
            }
        }
    }
}
