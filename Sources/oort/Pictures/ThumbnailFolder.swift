import Crypto
import Foundation
import OortModel
import OortProcesses
import OortSignIn
import SystemPackage

/// The person's folder of thumbnails, by the Thumbnail Managing Standard of freedesktop.org
/// (https://specifications.freedesktop.org/thumbnail-spec/latest/).
struct ThumbnailFolder: Sendable {
    /// One of the sizes that the standard has.
    enum Size: String, CaseIterable {
        /// At most 128 pixels wide and high.
        case normal
        /// At most 256.
        case large

        /// Pixels of the longer edge.
        var edge: Int { self == .normal ? 128 : 256 }
    }

    /// The path of the folder.
    let path: String

    /// The folder of the person whose environment this is.
    init(environment: [String: String], home: String) {
        let cache = environment["XDG_CACHE_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        path = (cache ?? home + "/.cache") + "/thumbnails"
    }

    /// Bytes that a thumbnail's texts begin within: ours stand first.
    private static let head = 16 << 10

    /// A file's address, with the bytes left as they are that GLib's `g_filename_to_uri` leaves: a
    /// thumbnail's name is made of it.
    static func address(of path: String) -> String {
        var result = "file://"
        for byte in path.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                result.unicodeScalars.append(Unicode.Scalar(byte))
            case _ where "-._~!$&'()*+,=:@/".utf8.contains(byte):
                result.unicodeScalars.append(Unicode.Scalar(byte))
            default: result += PercentCoding.encoded(CollectionOfOne(byte))
            }
        }
        return result
    }

    /// The file name of the thumbnail of what is at an address.
    static func name(of address: String) -> String {
        Insecure.MD5.hash(data: Data(address.utf8)).map { byte in
            let digits = String(byte, radix: 16)
            return byte < 16 ? "0" + digits : digits
        }.joined() + ".png"
    }

    /// Whether there are thumbnails, in all sizes, of a file as it was modified at a time.
    func has(_ address: String, modified: Timestamp) -> Bool {
        let name = Self.name(of: address)
        return Size.allCases.allSatisfy { size in
            guard let file = FileHandle(forReadingAtPath: "\(path)/\(size.rawValue)/\(name)"),
                let head = try? file.read(upToCount: Self.head),
                let texts = PNGText.texts(in: [UInt8](head))
            else { return false }
            return texts["Thumb::URI"] == address
                && texts["Thumb::MTime"] == String(modified.seconds)
        }
    }

    /// Puts a thumbnail in its place, where every reader sees all of it or all of the one before.
    ///
    /// - Throws: what the disk says; `CocoaError` where `png` is no PNG.
    func put(_ png: [UInt8], _ size: Size, of address: String, modified: Timestamp) throws {
        let texts = [
            ("Thumb::URI", address), ("Thumb::MTime", String(modified.seconds)),
            ("Software", "Oort"),
        ]
        guard let picture = PNGText.replacing(texts, in: png) else {
            throw CocoaError(.fileReadCorruptFile)
        }
        let folder = "\(path)/\(size.rawValue)"
        try FileManager.default.createDirectory(
            atPath: folder,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
        let made = "\(folder)/.oort-\(UUID().uuidString).png"
        try PrivateFile.make(made, picture)
        guard unsafe rename(made, "\(folder)/\(Self.name(of: address))") == 0 else {
            let error = POSIXError(POSIXError.Code(rawValue: errno) ?? .EIO)
            _ = unsafe unlink(made)
            throw error
        }
    }

    /// Takes away the thumbnails that `put` made of what lies below a folder.
    ///
    /// Blocks the thread: every thumbnail is looked at.
    func forget(below folder: String) {
        let address = Self.address(of: folder + "/")
        for size in Size.allCases {
            let files = "\(path)/\(size.rawValue)"
            // There may be none.
            for name in (try? FileManager.default.contentsOfDirectory(atPath: files)) ?? [] {
                let file = "\(files)/\(name)"
                guard name.hasSuffix(".png"), let head = Self.head(of: file),
                    let texts = PNGText.texts(in: head), texts["Software"] == "Oort",
                    texts["Thumb::URI"]?.begins(with: address) == true
                else { continue }
                _ = unsafe unlink(file)
            }
        }
    }

    /// The bytes in which a thumbnail's texts begin; nil for what is no file or cannot be read.
    private static func head(of file: String) -> [UInt8]? {
        guard
            let descriptor = try? FileDescriptor.open(
                FilePath(file),
                .readOnly,
                options: [.noFollow, .nonBlocking, .closeOnExec]
            )
        else { return nil }
        defer { try? descriptor.close() }
        return descriptor.readAll(atMost: head)
    }

    /// Takes away what programs noted of a file that they could not make a thumbnail of.
    func forgetFailures(of address: String) {
        let name = Self.name(of: address)
        let failed = path + "/fail"
        // There may be none.
        for program in (try? FileManager.default.contentsOfDirectory(atPath: failed)) ?? [] {
            _ = unsafe unlink("\(failed)/\(program)/\(name)")
        }
    }
}
