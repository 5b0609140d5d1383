import Foundation

/// What the client asks when it wants a small picture of something.
struct ThumbnailRequest: ControlRequest, Hashable {
    static let fields: Set = ["path", "edge"]

    /// An absolute path under the mount point.
    var path: String
    /// Pixels of the longer edge, about.
    var edge: Int

    /// Refuses an edge that no service renders.
    ///
    /// - Throws: `Failure` naming the field.
    func check() throws(Failure) {
        guard !(16...2048).contains(edge) else { return }
        throw Failure("edge must be from 16 to 2048.")
    }
}

/// A small picture, as the service rendered it.
struct ThumbnailReport: Codable, Hashable, Sendable {
    /// JPEG or PNG, in JSON as Base64.
    var picture: Data
}

extension ControlClient {
    /// The service's small picture of something; nothing of its content is fetched.
    func thumbnail(_ wish: ThumbnailRequest) async throws(Failure) -> ThumbnailReport {
        try await ask("POST", "/thumbnail", wish, answer: ThumbnailReport.self)
    }
}
