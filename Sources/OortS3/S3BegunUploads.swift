import Foundation
import OortModel
import OortSignIn
import Synchronization

/// The uploads in parts that were begun from here and have not ended, in a file.
///
/// A store keeps, and charges for, their parts for ever, and does not say which program began them: by its
/// list alone, another program's would be given up. If the file cannot be read or written, such parts stay
/// at the store; nothing else depends on it.
///
/// Isolation: any thread; one process writes the file.
final class S3BegunUploads: Sendable {
    /// An upload that was begun.
    struct Upload: Codable, Hashable, Sendable {
        /// The store's id of it.
        var id: String
        /// The key that it is for.
        var key: String
        /// When it was begun, by the store's clock, in seconds.
        var begun: Int64
    }

    private let path: String?
    /// Nil before the file was read.
    private let known = Mutex<[Upload]?>(nil)

    /// More than these are open only if something is wrong: the oldest is forgotten.
    private static let most = 1000

    /// The open uploads in a file; nil for no file.
    init(path: String?) { self.path = path }

    /// All uploads that were begun until a second.
    func begun(until second: Int64) -> [Upload] {
        known.withLock { known in uploads(&known).filter { $0.begun <= second } }
    }

    /// Notes that an upload was begun.
    func note(_ upload: Upload) {
        change { uploads in
            uploads.append(upload)
            if uploads.count > Self.most { uploads.removeFirst(uploads.count - Self.most) }
        }
    }

    /// Notes that an upload has ended, or was given up.
    func forget(_ id: String) {
        change { uploads in uploads.removeAll { $0.id.isSameText(as: id) } }
    }

    private func change(_ body: (inout [Upload]) -> Void) {
        known.withLock { known in
            let before = uploads(&known)
            var uploads = before
            body(&uploads)
            guard uploads != before else { return }
            known = uploads
            guard let path else { return }
            guard !uploads.isEmpty else {
                unsafe unlink(path)
                return
            }
            guard let data = try? JSONEncoder().encode(uploads) else { return }
            try? PrivateFile.replace(path, with: data)
        }
    }

    private func uploads(_ known: inout [Upload]?) -> [Upload] {
        if let known { return known }
        let data = path.flatMap { FileManager.default.contents(atPath: $0) }
        let read = data.flatMap { try? JSONDecoder().decode([Upload].self, from: $0) } ?? []
        known = read
        return read
    }
}
