import OortModel

/// What a server says of one resource (RFC 4918, section 14.24).
struct DAVResponse: Sendable {
    /// As it came: percent-encoded, a path or a whole address.
    var href: String
    /// The status of the whole resource; nil where there are properties.
    var status: Int?
    /// Properties of a good status.
    var properties: [XMLName: XMLElement] = [:]
    /// Properties of another status.
    var refused: [XMLName: Int] = [:]

    /// Whether the server said of the resource what it is.
    var isSound: Bool { (status.map { (200..<300).contains($0) } ?? true) && !properties.isEmpty }

    /// A property's text without white space around it; nil where it is empty or was not reported.
    func text(_ name: XMLName) -> String? {
        guard let text = properties[name]?.trimmed, !text.isEmpty else { return nil }
        return text
    }
}

/// Reads the answer with the status 207.
enum Multistatus {
    /// The responses of a whole document.
    ///
    /// - Throws: `.malformedAnswer` when anything is wrong with it, its end missing among that.
    static func responses(in body: [UInt8]) throws(ProviderError) -> [DAVResponse] {
        do throws(XMLFault) {
            var scanner = try XMLScanner(body)
            guard try scanner.root() == .dav("multistatus") else {
                throw XMLFault(reason: "no list of resources")
            }
            var responses: [DAVResponse] = []
            while let child = try scanner.nextChild() {
                guard child.name == .dav("response") else { continue }
                responses += try Self.responses(in: child)
            }
            return responses
        } catch {
            throw ProviderError(
                .malformedAnswer,
                detail: "the answer is not WebDAV's XML: \(error.reason)"
            )
        }
    }

    private static func responses(in element: XMLElement) throws(XMLFault) -> [DAVResponse] {
        var response = DAVResponse(href: "")
        var hrefs: [String] = []
        for part in element.children {
            switch part.name {
            case .dav("href"): hrefs.append(part.trimmed)
            case .dav("status"):
                guard let status = status(part.trimmed) else {
                    throw XMLFault(reason: "a status without a number")
                }
                response.status = status
            case .dav("propstat"): try add(part, to: &response)
            default: continue
            }
        }
        guard !hrefs.isEmpty else { throw XMLFault(reason: "a resource without a place") }
        return hrefs.map { href in
            var named = response
            named.href = href
            return named
        }
    }

    private static func add(
        _ propstat: XMLElement,
        to response: inout DAVResponse
    ) throws(XMLFault) {
        // Some servers leave the status away where all is well.
        var number = 200
        if let text = propstat.child(.dav("status"))?.trimmed {
            guard let status = status(text) else {
                throw XMLFault(reason: "a status without a number")
            }
            number = status
        }
        for property in propstat.child(.dav("prop"))?.children ?? [] {
            if (200..<300).contains(number) {
                response.properties[property.name] = property
            } else {
                response.refused[property.name] = number
            }
        }
    }

    /// The number in `HTTP/1.1 200 OK`.
    private static func status(_ line: String) -> Int? {
        guard let (_, rest) = line.cut(atFirst: " ") else { return nil }
        let digits = rest.drop { $0 == " " }.prefix { $0.isASCII && $0.isNumber }
        return Int(digits).flatMap { (100..<600).contains($0) ? $0 : nil }
    }
}
