import ArgumentParser

/// A length of time as people write it: `60s`, `500ms`, `5m`, `1h`, `30` (seconds).
struct TimeSpan: Hashable, Sendable {
    /// The length, never negative.
    let duration: Duration

    init(_ duration: Duration) { self.duration = max(duration, .zero) }

    /// Reads a number with an optional unit (ms, s, m, h, d); nil when it is not one.
    init?(_ text: String) {
        let number = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
        guard let value = Double(number), value.isFinite,
            let seconds = Self.seconds[String(text.dropFirst(number.count))],
            value * seconds < 1e9
        else { return nil }
        self.init(.milliseconds(Int64((value * seconds * 1000).rounded())))
    }

    private static let seconds: [String: Double] = [
        "": 1, "ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400,
    ]

    /// Seconds, with what is left of them.
    var seconds: Double {
        Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18
    }
}

extension TimeSpan: CustomStringConvertible {
    /// `90s` or `500ms`, in the form that can be read back.
    var description: String {
        let milliseconds = Int64((seconds * 1000).rounded())
        return milliseconds % 1000 == 0 ? "\(milliseconds / 1000)s" : "\(milliseconds)ms"
    }
}

extension TimeSpan: ExpressibleByArgument {
    init?(argument: String) { self.init(argument) }
}
