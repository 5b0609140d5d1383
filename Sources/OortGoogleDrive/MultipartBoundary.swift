/// The divider between the parts of one request, chosen for this request alone: since it cannot be known
/// beforehand, no content contains it.
struct MultipartBoundary: CustomStringConvertible {
    let description: String

    /// Another one with each call: 128 bits by the system's random numbers.
    init() {
        description = (0..<4).reduce(into: "oort") { text, _ in
            text += "-" + String(UInt32.random(in: .min ... .max), radix: 16)
        }
    }
}
