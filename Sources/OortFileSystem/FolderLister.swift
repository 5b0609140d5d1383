public import OortModel

/// Makes a folder's children known: the account's engine.
public protocol FolderLister: Sendable {
    /// Lists a folder at the service into the catalog; returns when its children are there. Several
    /// calls for one folder at a time are not made.
    ///
    /// - Throws: `ProviderError` when the service did not list it; the folder is as it was.
    func list(_ folder: Inode) async throws(ProviderError)

    /// Asks the service what has a name in a folder that may not be listed, into the catalog.
    ///
    /// - Throws: `ProviderError` when the service did not answer; the folder is as it was.
    func find(_ name: String, in folder: Inode) async throws(ProviderError)

    /// Asks the service for one item and applies what it says, without waiting for the feed.
    ///
    /// - Throws: `ProviderError` when the service did not answer; the item is as it was.
    func look(at item: Inode) async throws(ProviderError)

    /// Notes that a program was shown the account's room, as the catalog has it; the service may be asked
    /// again in the background. Returns at once, from any thread.
    func roomIsShown()

    /// Whether the service says with whom an item is shared when it is asked for that item.
    var tellsShares: Bool { get }

    /// Asks the service with whom an item is shared; asked of services with `tellsShares` only.
    ///
    /// - Throws: as `ShareReporting.sharedWith`.
    func sharedWith(_ item: Inode) async throws(ProviderError) -> TextList

    /// Makes a folder at the service and lists what lies beside it into the catalog; asked of services
    /// with `makesFoldersItself` only.
    ///
    /// - Throws: as `Provider.createFolder`; nothing is changed then.
    func makeFolder(_ name: String, in folder: Inode) async throws(ProviderError)
}

extension FolderLister {
    public var tellsShares: Bool { false }

    public func sharedWith(_ item: Inode) async throws(ProviderError) -> TextList {
        throw ProviderError(.unsupported, detail: "the service is not asked for single items")
    }

    public func makeFolder(_ name: String, in folder: Inode) async throws(ProviderError) {
        throw ProviderError(.unsupported, detail: "folders are made here first")
    }
}
