import Foundation
import OortCatalog
import OortModel

/// What a client asks that wants to hear of changes.
struct WatchRequest: ControlRequest, Hashable {
    static let fields: Set = ["path"]

    /// An absolute path in the mount; nil for all of it.
    var path: String?
}

/// One event for a watcher of a mount.
struct WatchEvent: Codable, Hashable, Sendable {
    /// What happened.
    enum Kind: String, Codable, Hashable, Sendable {
        /// From now on events are reported.
        case ready
        /// Something came into the tree.
        case created
        /// The bytes of a file, or attributes of something, are others.
        case changed
        /// Something lies elsewhere, or is called otherwise.
        case moved
        /// Something left the tree.
        case deleted
        /// The cloud has what was written on this machine.
        case sent
        /// A program wanted a name that the service does not take.
        case refused
        /// An account is in another state.
        case account
        /// Changes were lost, since they came faster than they were taken: look anew.
        case overflow
        /// Nothing happened for a while; the mount is alive.
        case alive
        /// The mount ends.
        case end
    }

    /// Who did it.
    enum Origin: String, Codable, Hashable, Sendable {
        /// A program of this machine.
        case here
        /// Another client at the service.
        case cloud
    }

    /// What an item is.
    enum ItemKind: String, Codable, Hashable, Sendable {
        case file, folder, link, other

        /// The kind of a node.
        init(_ kind: NodeKind) {
            self =
                switch kind {
                case .folder: .folder
                case .file, .nativeDocument: .file
                case .symlink, .shortcut: .link
                case .fifo, .socket: .other
                }
        }
    }

    /// What happened.
    var event: Kind
    /// When the mount saw it.
    var time: Date
    /// The path under the mount point where the item is, or was when it is deleted.
    var path: String?
    /// Where it was before it moved.
    var from: String?
    /// What it is.
    var kind: ItemKind?
    /// Whether the bytes are others, of what changed; else only attributes are.
    var content: Bool?
    /// Who did it.
    var origin: Origin?
    /// Which rule of the service a refused name breaks, in words.
    var reason: String?
    /// The account's name, of an event of an account.
    var account: String?
    /// Its state as `oort status` has it; "gone" when it is an account no longer.
    var state: String?

    /// An event with nothing but its kind.
    init(_ event: Kind, time: Date = Date()) {
        self.event = event
        self.time = time
    }

    /// A change as it is seen at or below a folder of the mount; nil where nothing of it is there.
    ///
    /// An item that moves in from elsewhere came, and one that moves out is gone. When the folder itself
    /// goes with one that it lies in, that is reported for the folder.
    init?(_ change: TreeChange, below folder: [String], top: String, time: Date) {
        let isOf = change.path.lies(at: folder)
        self.init(.changed, time: time)
        origin = change.isNews ? .cloud : .here
        kind = ItemKind(change.item)
        path = Self.path(change.path, top)
        switch change.kind {
        case .created where isOf: event = .created
        case .deleted where isOf: event = .deleted
        case .sent where isOf: (event, origin) = (.sent, nil)
        case .changed(let content) where isOf: self.content = content
        case .moved(let old):
            let wasOf = old.lies(at: folder)
            if isOf, wasOf {
                event = .moved
                from = Self.path(old, top)
            } else if isOf || folder.lies(at: change.path) {
                event = .created
                if !isOf { path = Self.path(folder, top) }
            } else if wasOf || folder.lies(at: old) {
                event = .deleted
                path = Self.path(wasOf ? old : folder, top)
            } else {
                return nil
            }
        default: return nil
        }
    }

    /// A name that was refused, as it is seen below a folder of the mount; nil where it is not of it.
    init?(refused path: [String], _ reason: String, below folder: [String], top: String, time: Date)
    {
        guard path.lies(at: folder) else { return nil }
        self.init(.refused, time: time)
        self.path = Self.path(path, top)
        self.reason = reason
    }

    private static func path(_ names: [String], _ top: String) -> String {
        ([top] + names).joined(separator: "/")
    }

    /// The event in a line for people; nil for what only keeps the connection.
    var line: String? {
        let words: String
        switch event {
        case .ready, .alive, .end: return nil
        case .overflow: words = "Changes were lost: look at the folder anew."
        case .account: words = "\(account ?? ""): \(state ?? "")"
        case .moved:
            words = TerminalText.line(from ?? "") + " -> " + TerminalText.line(path ?? "")
        case .refused:
            words = TerminalText.line(path ?? "") + ": " + TerminalText.line(reason ?? "")
        case .created, .changed, .deleted, .sent: words = TerminalText.line(path ?? "")
        }
        let clock = time.formatted(
            Date.ISO8601FormatStyle(timeZone: .current).time(includingFractionalSeconds: false)
        )
        let name = event.rawValue
        return "\(clock)  \(name)\(String(repeating: " ", count: max(8 - name.count, 0)))  \(words)"
    }
}

extension [String] {
    /// Whether this path is another one or lies below it.
    fileprivate func lies(at other: [String]) -> Bool {
        count >= other.count && zip(self, other).allSatisfy { $0.isSameText(as: $1) }
    }
}
