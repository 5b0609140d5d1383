import Crypto
import Foundation
import OortModel
import Synchronization

/// The bytes of one revision: immutable, readable anywhere, with its hashes computed once.
public final class SimulatedContent: Sendable {
    private enum Storage: Sendable {
        case bytes([UInt8])
        case generated(seed: UInt64, pattern: [UInt8])
        case file(SpooledFile)
        case joined([SimulatedContent], offsets: [Int64])
    }

    /// Bytes in all.
    public let size: Int64
    private let storage: Storage
    /// Digests by the name of their algorithm.
    private let digests = Mutex<[String: String]>([:])

    private static let patternSize = 1 << 20
    /// Above this a content lies in a temporary file.
    private static let largestInMemory = 8 << 20

    private init(size: Int64, storage: Storage) {
        self.size = size
        self.storage = storage
    }

    /// The given bytes; many of them go to a temporary file.
    public convenience init(_ bytes: [UInt8]) {
        if bytes.count > Self.largestInMemory, let file = SpooledFile(bytes) {
            self.init(size: Int64(bytes.count), storage: .file(file))
        } else {
            self.init(size: Int64(bytes.count), storage: .bytes(bytes))
        }
    }

    /// A text in UTF-8.
    public convenience init(_ text: String) { self.init(Array(text.utf8)) }

    /// `size` bytes made on the fly from `seed`: no memory, any range at once.
    public convenience init(seed: UInt64, size: Int64) {
        var random = RandomSource(seed: seed)
        var pattern: [UInt8] = []
        pattern.reserveCapacity(Self.patternSize)
        while pattern.count < Self.patternSize {
            let word = random.next()
            for shift in stride(from: UInt64(0), to: 64, by: 8) {
                pattern.append(UInt8(truncatingIfNeeded: word >> shift))
            }
        }
        self.init(size: size, storage: .generated(seed: seed, pattern: pattern))
    }

    /// The parts one after the other, without copying them.
    public convenience init(joining parts: [SimulatedContent]) {
        if let only = parts.first, parts.count == 1 {
            self.init(size: only.size, storage: only.storage)
            return
        }
        var offsets: [Int64] = []
        var size: Int64 = 0
        for part in parts {
            offsets.append(size)
            size += part.size
        }
        self.init(size: size, storage: .joined(parts, offsets: offsets))
    }

    /// The bytes of `range`, cut at the end of the content.
    public func bytes(in range: Range<Int64>) -> [UInt8] {
        let range = range.clamped(to: 0..<size)
        guard !range.isEmpty else { return [] }
        switch storage {
        case .bytes(let bytes): return Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
        case .file(let file): return file.read(range)
        case .generated(_, let pattern): return Self.generate(range, from: pattern)
        case .joined(let parts, let offsets):
            var bytes: [UInt8] = []
            bytes.reserveCapacity(range.count)
            for (part, offset) in zip(parts, offsets)
            where offset < range.upperBound && offset + part.size > range.lowerBound {
                bytes += part.bytes(
                    in: max(
                        0,
                        range.lowerBound - offset
                    )..<min(
                        part.size,
                        range.upperBound - offset
                    )
                )
            }
            return bytes
        }
    }

    /// All bytes.
    public var bytes: [UInt8] { bytes(in: 0..<size) }

    /// Each block of the pattern carries its number, so that no two places are alike.
    private static func generate(_ range: Range<Int64>, from pattern: [UInt8]) -> [UInt8] {
        let blockSize = Int64(patternSize)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(range.count)
        var offset = range.lowerBound
        while offset < range.upperBound {
            let block = offset / blockSize
            let end = min(range.upperBound, (block + 1) * blockSize)
            let inBlock = Int(offset - block * blockSize)
            let count = Int(end - offset)
            let start = bytes.count
            bytes += pattern[inBlock..<inBlock + count]
            for place in stride(from: inBlock, to: min(8, inBlock + count), by: 1) {
                bytes[start + place - inBlock] = UInt8(
                    truncatingIfNeeded: block >> Int64(place * 8)
                )
            }
            offset = end
        }
        return bytes
    }

    /// Hands all bytes to `body`, block by block of at most `blockSize` bytes.
    public func forEachBlock(of blockSize: Int, _ body: ([UInt8]) -> Void) {
        var offset: Int64 = 0
        while offset < size {
            let end = min(size, offset + Int64(blockSize))
            body(bytes(in: offset..<end))
            offset = end
        }
    }

    /// A digest under the name of its algorithm, computed the first time it is asked for.
    public func digest(_ algorithm: String, compute: (SimulatedContent) -> String) -> String {
        if let known = digests.withLock({ $0[algorithm] }) { return known }
        let value = compute(self)
        digests.withLock { $0[algorithm] = value }
        return value
    }

    /// MD5 in lower-case hex.
    public var md5: String { digest("md5") { $0.hash(with: Insecure.MD5()) } }
    /// SHA-1 in lower-case hex.
    public var sha1: String { digest("sha1") { $0.hash(with: Insecure.SHA1()) } }
    /// SHA-256 in lower-case hex.
    public var sha256: String { digest("sha256") { $0.hash(with: SHA256()) } }

    /// SHA-256 over the SHA-256 of each block of 4 MiB, in lower-case hex.
    public var dropboxHash: String {
        digest("dropbox") { content in
            var outer = SHA256()
            content.forEachBlock(of: 4 << 20) { outer.update(data: Array(SHA256.hash(data: $0))) }
            return outer.finalize().hexadecimal
        }
    }

    private func hash(with function: some HashFunction) -> String {
        var function = function
        forEachBlock(of: 1 << 20) { function.update(data: $0) }
        return function.finalize().hexadecimal
    }
}

extension Sequence<UInt8> {
    /// The bytes in lower-case hex.
    var hexadecimal: String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for byte in self {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }
}

/// A temporary file without a name: it is gone when its last reference goes.
private final class SpooledFile: Sendable {
    private let handle: Mutex<FileHandle>

    init?(_ bytes: [UInt8]) {
        let url = FileManager.default.temporaryDirectory
            .appending(path: "oort-simulator-\(UUID().uuidString)")
        guard FileManager.default.createFile(atPath: url.path, contents: nil),
            let handle = try? FileHandle(forUpdating: url)
        else { return nil }
        do {
            // Piece by piece: a copy of the whole could be large.
            for start in stride(from: 0, to: bytes.count, by: 4 << 20) {
                let end = min(bytes.count, start + (4 << 20))
                try handle.write(contentsOf: Data(bytes[start..<end]))
            }
        } catch {
            try? FileManager.default.removeItem(at: url)
            return nil
        }
        try? FileManager.default.removeItem(at: url)
        self.handle = Mutex(handle)
    }

    func read(_ range: Range<Int64>) -> [UInt8] {
        handle.withLock { handle in
            do {
                try handle.seek(toOffset: UInt64(range.lowerBound))
                return Array(try handle.read(upToCount: range.count) ?? Data())
            } catch {
                return []
            }
        }
    }
}
