import ArgumentParser

/// A number of bytes as people write it: `20G`, `512M`, `1.5 GiB`, `4096`.
struct ByteSize: Hashable, Sendable {
    /// The number of bytes, never negative.
    let bytes: Int64

    init(bytes: Int64) { self.bytes = max(bytes, 0) }

    /// Reads a number with an optional unit, all in steps of 1024; nil when it is not one.
    init?(_ text: String) {
        let text = text.trimmingPrefix { $0 == " " }
        let number = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
        let unit = text.dropFirst(number.count).drop { $0 == " " }.lowercased()
        guard let value = Double(number), value.isFinite, let power = Self.power(of: unit) else {
            return nil
        }
        let bytes = (0..<power).reduce(value) { value, _ in value * 1024 }
        guard bytes < 9e18 else { return nil }
        self.init(bytes: Int64(bytes))
    }

    private static func power(of unit: String) -> Int? {
        let letter =
            unit.hasSuffix("ib")
            ? unit.dropLast(2) : unit.hasSuffix("b") ? unit.dropLast() : unit[...]
        switch letter {
        case "": return unit == "ib" ? nil : 0
        case "k": return 1
        case "m": return 2
        case "g": return 3
        case "t": return 4
        default: return nil
        }
    }
}

extension ByteSize: CustomStringConvertible {
    /// `4.2 GiB`, as shown to people.
    var description: String {
        guard bytes >= 1024 else { return "\(bytes) B" }
        var value = Double(bytes)
        var unit = "B"
        for next in ["KiB", "MiB", "GiB", "TiB", "PiB"] where value >= 1024 {
            value /= 1024
            unit = next
        }
        let tenths = Int64((value * 10).rounded())
        return tenths % 10 == 0 ? "\(tenths / 10) \(unit)" : "\(tenths / 10).\(tenths % 10) \(unit)"
    }
}

extension ByteSize: ExpressibleByArgument {
    init?(argument: String) { self.init(argument) }
}
