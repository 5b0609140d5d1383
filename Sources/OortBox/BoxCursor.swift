import Foundation
import OortModel

/// Our place in the stream of events, and the folders that are still to be listed.
///
/// Box has no enumeration, keeps events for some weeks only, repeats them, and sends them in no order: the
/// cursor carries what is needed to cope with that after a restart, too.
struct BoxCursor: Codable, Equatable {
    /// A folder that is to be listed.
    struct Listing: Codable, Equatable {
        var folder: String
        /// The next page; Box forgets it soon, and the folder is begun anew then.
        var marker: String?
        /// Whether what lies below is to be listed, too.
        var isDeep = true
        /// Whether its marker was forgotten, so that now it is read without rests between its pages.
        var isAnew = false
        /// How often Box said that it has no such folder, which it has.
        var misses = 0
    }

    /// The last state of an item that events reported.
    struct Told: Codable, Equatable {
        var item: String
        var sequence: Int64
    }

    /// Where the stream goes on; a number of 64 bits, kept as the text that it came as.
    var position: String
    /// Seconds since 1970 when the stream was read; written down once a day.
    var read: Int64
    /// Seconds since 1970 when the last enumeration began.
    var enumerated: Int64
    /// Folders to be listed, the next one last.
    var listings: [Listing] = []
    var isEnumeration = false
    /// The ends of the newest events' ids, the newest last.
    var seen: [String] = []
    /// Items of the newest events, the newest last.
    var told: [Told] = []
    /// Items of which Box did not let us see all, the newest last.
    var untold: [String] = []
    /// Seconds since 1970 when those were asked for last, or when the first of them came.
    var untoldAsked: Int64 = 0

    static let seenKept = 1000
    static let toldKept = 500
    static let untoldKept = 500
    /// How many folders wait to be listed before the pages of one folder are read with rests, in which
    /// what the last one named is listed.
    static let manyListings = 2000
    /// After so many seconds, an item that Box did not report is asked for once more.
    static let untoldRest: Int64 = 24 * 3600
    /// Box keeps events for two weeks at least, and does not say what it answers later.
    static let longestPause: Int64 = 14 * 24 * 3600
    /// Seconds by which a clock may be set back for the events still to be read on.
    static let longestSetback: Int64 = 24 * 3600
    /// The stream is no perfect history: after so long all folders are listed again.
    static let longestTrust: Int64 = 28 * 24 * 3600

    init(position: String, now: Int64) {
        self.position = position
        read = now
        enumerated = now
    }

    init(_ cursor: Cursor) throws(ProviderError) {
        do {
            self = try JSONDecoder().decode(BoxCursor.self, from: Data(cursor.rawValue.utf8))
        } catch {
            throw ProviderError(.cursorLost, detail: "not a cursor of this provider")
        }
    }

    func cursor() throws(ProviderError) -> Cursor {
        Cursor(String(decoding: try BoxAPI.json(self), as: UTF8.self))
    }

    /// - Throws: `.cursorLost` when the stream may have forgotten something.
    func check(now: Int64) throws(ProviderError) {
        let unread = now.addingSaturating(-read)
        guard unread <= Self.longestPause else {
            throw ProviderError(.cursorLost, detail: "the events were not read for two weeks")
        }
        // How long they were not read is not known then.
        guard unread > -Self.longestSetback else {
            throw ProviderError(.cursorLost, detail: "the clock was set back")
        }
        guard now.addingSaturating(-enumerated) <= Self.longestTrust else {
            throw ProviderError(.cursorLost, detail: "the last enumeration is four weeks old")
        }
    }

    /// Has a folder listed, from its beginning.
    mutating func willList(_ folder: BoxID, isDeep: Bool = true) {
        let listing = Listing(folder: folder.id, isDeep: isDeep)
        if !listings.contains(listing) { listings.append(listing) }
    }

    /// Notes that Box did not let us see all of an item: asked for once more in a day.
    mutating func missed(_ item: BoxID, now: Int64) {
        let key = item.itemID.rawValue
        guard !untold.contains(key) else { return }
        if untold.isEmpty { untoldAsked = now }
        untold.append(key)
    }

    /// The items that are to be asked for once more, which are noted no longer.
    mutating func untoldDue(now: Int64) -> [ItemID] {
        guard !(0...Self.untoldRest).contains(now.addingSaturating(-untoldAsked)) else { return [] }
        defer { untold = [] }
        return untold.map { ItemID($0) }
    }

    /// Those of a page's events that were not seen before, each once.
    mutating func unseen(_ events: [BoxWire.Event]) -> [BoxWire.Event] {
        var known = Set(seen)
        var fresh: [BoxWire.Event] = []
        for event in events {
            guard let id = event.event_id.map({ String($0.suffix(16)) }) else { continue }
            guard known.insert(id).inserted else { continue }
            seen.append(id)
            fresh.append(event)
        }
        seen = seen.suffix(Self.seenKept)
        return fresh
    }

    /// Whether an event reports a newer state of an item than was reported before; notes it then.
    mutating func isNews(of item: BoxID, sequence: String?) -> Bool {
        guard let sequence = sequence.flatMap({ Int64($0) }) else { return true }
        let key = item.itemID.rawValue
        if let index = told.firstIndex(where: { $0.item == key }) {
            guard told[index].sequence < sequence else { return false }
            told.remove(at: index)
        }
        told.append(Told(item: key, sequence: sequence))
        if told.count > Self.toldKept { told.removeFirst(told.count - Self.toldKept) }
        return true
    }
}
