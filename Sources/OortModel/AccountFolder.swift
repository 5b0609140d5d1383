/// A folder at a service where an account's tree begins, in place of all that the person has there.
public struct AccountFolder: Codable, Hashable, Sendable {
    /// The folder's id, which stays when somebody renames or moves it.
    public var id: ItemID
    /// The names from the service's own root to the folder, as they were when it was chosen; never empty.
    public var path: [String]

    /// A folder by its id and its place.
    public init(id: ItemID, path: [String]) {
        self.id = id
        self.path = path
    }
}

extension ItemID: Codable {
    public init(from decoder: any Decoder) throws {
        self.init(try decoder.singleValueContainer().decode(String.self))
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }
}

extension ProviderError {
    /// The error as one of the folder where an account begins.
    ///
    /// That this folder is not there says nothing about its contents, which stay as they were known until
    /// it is there again.
    public var asOfAccountFolder: ProviderError {
        guard isLastingRefusal, kind != .noPermission else { return self }
        return ProviderError(
            .offline,
            detail: "the folder where the account begins cannot be found: \(detail)"
        )
    }
}
