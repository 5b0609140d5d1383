/// A text that must not be seen: tokens, client secrets, codes.
///
/// Every way of printing it prints `<secret>`.
public struct Secret: Hashable, Sendable {
    private let text: String

    /// Wraps a text.
    public init(_ text: String) { self.text = text }

    /// The text itself, for the request or the store that needs it.
    public func revealed() -> String { text }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Always `<secret>`.
    public var description: String { "<secret>" }
    /// Always `<secret>`.
    public var debugDescription: String { "<secret>" }
    /// Without children, so that `dump` shows nothing either.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
