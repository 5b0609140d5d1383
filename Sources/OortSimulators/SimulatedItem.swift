public import OortModel

/// One item of a simulated account, in terms that all services share.
public struct SimulatedItem: Sendable {
    /// What an item is.
    public enum Kind: Sendable, Hashable {
        /// Has contents.
        case file
        /// Holds other items.
        case folder
        /// Leads to another item.
        case shortcut(target: String)
        /// Lives at the service only; its exports are made from its content, which is plain text.
        case nativeDocument(NativeDocument)
    }

    /// The kinds of documents that live at a service only.
    public enum NativeDocument: String, Sendable, Hashable, CaseIterable {
        /// A text document.
        case document
        /// A spreadsheet.
        case spreadsheet
        /// A set of slides.
        case presentation
        /// A drawing.
        case drawing
        /// A notebook.
        case notebook
    }

    /// The service's id.
    public internal(set) var id: String
    /// The folder that holds it; nil for a root, and for what has no place in the account's tree.
    public internal(set) var parentID: String?
    /// The name, case and normal form as given.
    public internal(set) var name: String
    /// What it is.
    public let kind: Kind
    /// All revisions of a file's content, oldest first; the last is current.
    public internal(set) var revisions: [SimulatedRevision]
    /// When it was created at the service.
    public var createdTime: Timestamp
    /// When it was last modified, by the clock of the machine that did.
    public var modifiedTime: Timestamp
    /// When the service took the last change.
    public internal(set) var serverModifiedTime: Timestamp
    /// The free text that belongs to it.
    public var description: String?
    /// When it was put into the trash by itself; nil when it was not.
    public var trashedTime: Timestamp?
    /// The media type, where one was given.
    public var mimeType: String?
    /// Grows with every change of anything.
    public internal(set) var version: Int64
    /// The version with which it came from another folder; nil for what never did.
    public internal(set) var movedVersion: Int64?
    /// Fields that only one service has, in its own names.
    public var extra: [String: JSON]
    /// Whether another person made it, and it lies in the account because it is shared.
    public var isStrangers = false

    /// The current revision.
    public var head: SimulatedRevision? { revisions.last }
    /// Bytes of the current content; 0 without one.
    public var size: Int64 { revisions.last?.content.size ?? 0 }
    /// Whether it is a folder.
    public var isFolder: Bool { kind == .folder }
}

/// One version of a file's content.
public struct SimulatedRevision: Sendable {
    /// The service's id of the revision.
    public var id: String
    /// The bytes.
    public var content: SimulatedContent
    /// The modified time that came with it.
    public var modifiedTime: Timestamp
    /// When the service took it.
    public var serverModifiedTime: Timestamp
}

/// What makes one service's tree different from another's.
public struct SimulatedTreeRules: Sendable {
    /// How two names are compared.
    public var comparison: NameRules.Comparison
    /// Whether removals must be reported by path, too (`SimulatedTree.pathChanges`).
    public var keepsPathLog: Bool
    /// The id of a new item.
    public var makeID: @Sendable (SimulatedItem.Kind, inout RandomSource) -> String
    /// The id of a new revision.
    public var makeRevisionID: @Sendable (inout RandomSource) -> String

    /// Rules with all of their parts.
    public init(
        comparison: NameRules.Comparison,
        keepsPathLog: Bool,
        makeID: @escaping @Sendable (SimulatedItem.Kind, inout RandomSource) -> String,
        makeRevisionID: @escaping @Sendable (inout RandomSource) -> String
    ) {
        self.comparison = comparison
        self.keepsPathLog = keepsPathLog
        self.makeID = makeID
        self.makeRevisionID = makeRevisionID
    }
}
