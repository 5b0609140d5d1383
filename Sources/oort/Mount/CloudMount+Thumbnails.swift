import Foundation
import OortCatalog
import OortModel
import OortSync

/// Small pictures that the services render.
extension CloudMount {
    /// Bytes of the largest that is handed on.
    private static let largestThumbnail = 2 << 20

    func thumbnail(_ request: ThumbnailRequest) async throws(Failure) -> ThumbnailReport {
        let (place, node) = try existing(request.path)
        let account = place.account
        let item = try await reference(to: node, at: place)
        var picture = Data()
        do throws(ProviderError) {
            try await account.engine.checkPerson()
            let stream = try await account.engine.thumbnail(of: item, edge: request.edge)
            while picture.count <= Self.largestThumbnail, let part = try await stream.next() {
                picture += part
            }
        } catch {
            if error.kind == .unsupported {
                throw Failure("\(title(of: account)) has no small picture of \(place.shown).")
            }
            throw failure(error, "The picture of \(place.shown) did not come", account)
        }
        guard picture.count <= Self.largestThumbnail else {
            throw Failure("The picture of \(place.shown) is not small.")
        }
        return ThumbnailReport(picture: picture)
    }
}
