import Foundation
import Logging
import OortCatalog
import OortFileSystem
import OortModel
import OortSync
import Synchronization

/// The services' small pictures in the person's folder of thumbnails.
extension CloudMount {
    /// Bytes of the largest that is taken.
    private static let largestPicture = 2 << 20

    /// What brings the pictures for the mount at a path; nil where the settings want none, or it could not
    /// be made.
    func makePictures(at path: String) -> FolderPictures? {
        let viewers = options.settings.pictureViewers
        let environment = ProcessInfo.processInfo.environment
        guard !viewers.programs.isEmpty, let scaler = PictureScaler(environment) else { return nil }
        let workshop = options.folders.runtime + "/pictures"
        do {
            // What another mount left.
            if FileManager.default.fileExists(atPath: workshop) {
                try FileManager.default.removeItem(atPath: workshop)
            }
            try FileManager.default.createDirectory(
                atPath: workshop,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
        } catch {
            logger.warning("there will be no thumbnails", metadata: ["error": "\(error)"])
            return nil
        }
        return FolderPictures(
            FolderPictures.Mount(
                tops: Array(Set([path, options.mountPoint.path])),
                catalog: catalog,
                isElsewhere: { [files] in files.wouldBeFetched($0) },
                picture: { [weak self] (node) async throws(ProviderError) in
                    try await self?.smallPicture(of: node)
                },
                touch: { [kernelEvents] in kernelEvents.hear([.content($0)]) }
            ),
            for: viewers,
            to: ThumbnailFolder(environment: environment, home: options.folders.home),
            by: scaler,
            workshop: workshop,
            logger: logger
        )
    }

    /// What a service renders of a file; nil where it has no such picture, or is paused.
    private func smallPicture(of node: Node) async throws(ProviderError) -> Data? {
        let found = accounts.withLock { $0.values.first { $0.id == node.account } }
        guard let account = found else { return nil }
        guard pace.withLock({ $0.pause(of: account.name, at: Date()) == nil }) else {
            throw ProviderError(.cancelled, detail: "the account is paused")
        }
        let item: ItemReference?
        do throws(CatalogError) { item = try await catalog.reference(to: node.inode) } catch {
            throw ProviderError(.localContent, detail: "catalog: \(error)")
        }
        guard let item, node.remoteID != nil else { return nil }
        try await account.engine.checkPerson()
        let stream = try await account.engine.thumbnail(
            of: item,
            edge: ThumbnailFolder.Size.large.edge
        )
        var picture = Data()
        while let part = try await stream.next() {
            picture += part
            guard picture.count <= Self.largestPicture else { return nil }
        }
        return picture
    }
}
