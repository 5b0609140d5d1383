/// A ZIP archive whose files are not compressed (APPNOTE.TXT 6.3), which is what the office formats
/// lie in.
enum StoredZip {
    static func archive(_ files: [(name: String, bytes: [UInt8])]) -> [UInt8] {
        var archive: [UInt8] = []
        var directory: [UInt8] = []
        for file in files {
            let name = Array(file.name.utf8)
            let offset = archive.count
            let size = number(UInt32(file.bytes.count), 4)
            let fields =
                number(20, 2) + number(0x800, 2) + number(0, 2) + number(0, 2) + number(0x5C21, 2)
                + number(SamplePicture.crc(file.bytes), 4) + size + size
                + number(UInt32(name.count), 2)
                + number(0, 2)
            archive += number(0x0403_4B50, 4) + fields + name + file.bytes
            directory += number(0x0201_4B50, 4) + number(20, 2) + fields + number(0, 2)
            directory += number(0, 2) + number(0, 2) + number(0, 4) + number(UInt32(offset), 4)
            directory += name
        }
        let count = number(UInt32(files.count), 2)
        return archive + directory + number(0x0605_4B50, 4) + number(0, 4) + count + count
            + number(UInt32(directory.count), 4) + number(UInt32(archive.count), 4) + number(0, 2)
    }

    private static func number(_ value: UInt32, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> UInt32($0 * 8)) }
    }
}
