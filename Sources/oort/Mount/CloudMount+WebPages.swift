import OortCatalog
import OortModel
import OortSync

/// Pages that show something of the mount in a browser.
extension CloudMount {
    func page(_ request: PageRequest) async throws(Failure) -> PageReport {
        let (place, node) = try existing(request.path)
        let account = place.account
        let title = title(of: account)
        guard let pages = account.engine.webPages else {
            throw Failure(
                "\(account.name): \(title) has no web pages of files and folders that Oort knows."
            )
        }
        let item = try await pageReference(to: node, at: place)
        let url: String
        do throws(ProviderError) {
            try await account.engine.checkPerson()
            url = try await pages.page(of: item, isFolder: node.kind == .folder)
        } catch {
            if error.kind == .unsupported {
                throw Failure("\(title) has no web page of \(place.shown).")
            }
            throw failure(error, "The page of \(place.shown) was not found", account)
        }
        // It is handed to the desktop, which would start any program for an address of its own.
        let isOfWeb = url.begins(with: "https://") || url.begins(with: "http://")
        guard isOfWeb, url.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
            throw Failure("\(title) names a page of \(place.shown) that is no web address.")
        }
        return PageReport(path: place.path, url: url)
    }

    /// The account's own folder is known by its path where it has no id.
    private func pageReference(
        to node: Node,
        at place: MountedPath
    ) async throws(Failure) -> ItemReference {
        guard node.isAccountRoot else { return try await reference(to: node, at: place) }
        do throws(CatalogError) {
            guard let root = try await catalog.reference(to: node.inode) else { throw .noAccount }
            return root
        } catch { throw CatalogTrouble.failure(error, path: options.folders.catalogFile) }
    }
}
