/// Says with whom an item is shared, at a service that says it only when it is asked for that item.
///
/// Isolation, cancellation and repetition are those of `Provider`.
public protocol ShareReporting: Sendable {
    /// The people, groups and links that can reach an item, without its owner; empty where there are none.
    ///
    /// - Throws: `.noPermission` or `.unsupported` where the service does not say it of this item.
    func sharedWith(_ item: ItemReference) async throws(ProviderError) -> TextList
}

extension TextList {
    /// How a link that opens for everybody is named.
    public static let anyone = "anyone with the link"

    /// How a group is named.
    public static func group(_ name: String) -> String { "\(name) (group)" }
}
