import Foundation
import OortCatalog
import OortModel

extension RestingState {
    /// Finds items among what the catalog knew last; `each` hears of results, remarks and the end.
    ///
    /// The folder is as typed: a path below where the mount usually is, or one that begins with an
    /// account.
    ///
    /// - Throws: `Failure` where nothing is known yet, for a folder that is not there, and when the
    ///   catalog cannot be read.
    func search(
        _ request: SearchRequest,
        in folder: String?,
        usuallyAt mountPoint: String,
        each: (SearchLine) -> Void
    ) async throws(Failure) {
        var query = try request.query(in: nil)
        guard FileManager.default.fileExists(atPath: folders.catalogFile) else {
            let list = try AccountRegistry(folders: folders).list()
            let hasAccounts = !list.accounts.isEmpty || !list.unusable.isEmpty
            throw Failure(
                "No mount is running, and nothing is known of any cloud yet.",
                advice: hasAccounts
                    ? "Mount: oort mount" : "Sign in (oort login dropbox), then mount: oort mount"
            )
        }
        var failure: Failure?
        do throws(CatalogError) {
            let catalog = try openCatalog()
            if let folder {
                let node = try catalog.node(atPath: Self.names(folder, mountPoint))
                query.folder = node?.inode
                if node == nil { failure = SearchWords.notThere(folder) }
                if let node, node.kind != .folder { failure = SearchWords.notAFolder(folder) }
            }
            if failure == nil {
                each(SearchLine(note: "No mount is running: this is what was known last."))
                if request.content == true {
                    each(SearchLine(note: "The services are only asked by a mount: oort mount"))
                }
                let answer = try await catalog.search(query)
                for hit in answer.hits { each(SearchLine(result: SearchResult(hit, below: ""))) }
                if let note = SearchResult.note(unindexed: answer.unindexed) {
                    each(SearchLine(note: note))
                }
                each(SearchLine(end: SearchEnd(count: answer.hits.count, isCut: answer.isCut)))
            }
            try catalog.close()
        } catch {
            throw CatalogTrouble.failure(error, path: folders.catalogFile)
        }
        if let failure { throw failure }
    }

    /// The names from an account's down to a folder.
    static func names(_ folder: String, _ mountPoint: String) -> [String] {
        let path = MountPoint(folder).path
        let below =
            path == mountPoint
            ? "" : path.dropping(beginning: mountPoint + "/").map(String.init) ?? folder
        return below.parts(between: "/").filter { !$0.isEmpty && $0 != "." }.map(String.init)
    }
}
