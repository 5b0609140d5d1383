import Foundation
import OortModel
import Synchronization
import SystemPackage

/// A place of which a person wants to know the weather.
struct WeatherPlace: Codable, Hashable, Sendable {
    /// The account's number of it; never used twice.
    var number: Int
    /// The folder's name, as the person wrote it.
    var name: String
    /// The place with what distinguishes it from others of its name.
    var title: String
    /// Degrees, north of the equator.
    var latitude: Double
    /// Degrees, east of Greenwich.
    var longitude: Double
    /// The name of its time zone; nil is UTC.
    var timeZone: String?
    /// The account's change that last reported it.
    var change: Int
    /// The time that the folder and its files show, in seconds since 1970: since when they may read
    /// otherwise than before.
    var modified: Int64
    /// The last answer of a service.
    var answer: WeatherAnswer?

    /// The clocks of the place.
    var zone: TimeZone { timeZone.flatMap { TimeZone(identifier: $0) } ?? .gmt }
}

/// The places of an account, in a file of its own: no service keeps them.
final class WeatherPlaces: Sendable {
    /// What the file holds.
    struct Kept: Codable, Sendable {
        /// Distinguishes this file from another one that had its name: cursors are of one file only.
        var generation: String
        /// The last change.
        var change = 0
        /// The last number that a place got.
        var number = 0
        /// The places by their numbers.
        var places: [Int: WeatherPlace] = [:]
        /// The changes by which places went, by their numbers.
        var gone: [Int: Int] = [:]
    }

    private let path: String
    private let state: Mutex<Kept>

    /// The most places of an account.
    static let most = 200

    /// The places in a file, or none where there is no file yet.
    ///
    /// - Throws: `.localContent` when the file is there and cannot be read.
    init(path: String) throws(ProviderError) {
        self.path = path
        guard FileManager.default.fileExists(atPath: path) else {
            let generation = String(UInt64.random(in: .min ... .max), radix: 36)
            state = Mutex(Kept(generation: generation))
            return
        }
        do {
            let data = try Data(contentsOf: URL(filePath: path))
            state = Mutex(try JSONDecoder().decode(Kept.self, from: data))
        } catch {
            throw ProviderError(.localContent, detail: "the places in \(path): \(error)")
        }
    }

    /// What there is now.
    var kept: Kept { state.withLock(\.self) }

    /// Changes the places, and returns once the file has it.
    ///
    /// - Throws: `.localContent` when the file cannot be written; nothing is changed then.
    func change<Value: Sendable>(
        _ body: (inout Kept) throws(ProviderError) -> Value
    ) throws(ProviderError) -> Value {
        let result: Result<Value, ProviderError> = state.withLock { state in
            var new = state
            do throws(ProviderError) {
                let value = try body(&new)
                try write(new)
                state = new
                return .success(value)
            } catch { return .failure(error) }
        }
        return try result.get()
    }

    /// Writes the file, so that the death of the machine leaves the old one or the new one.
    private func write(_ kept: Kept) throws(ProviderError) {
        let folder = (path as NSString).deletingLastPathComponent
        let temporary = path + ".new"
        do {
            try FileManager.default.createDirectory(
                atPath: folder,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
            let file = try FileDescriptor.open(
                FilePath(temporary),
                .writeOnly,
                options: [.create, .truncate],
                permissions: .ownerReadWrite
            )
            try file.closeAfter {
                try file.writeAll(try JSONEncoder().encode(kept))
                try Self.synchronise(file)
            }
            // Unsafe only because C strings are passed, which live as long as the call.
            guard unsafe rename(temporary, path) == 0 else { throw Errno(rawValue: errno) }
            let place = try FileDescriptor.open(FilePath(folder), .readOnly)
            try place.closeAfter { try Self.synchronise(place) }
        } catch {
            throw ProviderError(.localContent, detail: "\(path) cannot be written: \(error)")
        }
    }

    private static func synchronise(_ file: FileDescriptor) throws {
        guard fsync(file.rawValue) == 0 else { throw Errno(rawValue: errno) }
    }
}
