/// A request that the simulated Dropbox refuses.
enum DropboxFailure: Error, Sendable {
    /// 400 with plain text: the request's form is wrong.
    case malformed(String)
    /// 409 with JSON: the route's own error.
    case route(JSON)
    /// 401 with JSON.
    case token(String)
    /// 422: the path root is not one of the account's.
    case pathRoot(JSON)
    /// Another status with plain text.
    case status(Int, String)

    /// An error union of void members: each tag holds the next.
    static func tags(_ tags: String...) -> DropboxFailure { .route(union(tags)) }

    static func union(_ tags: [String]) -> JSON {
        guard let first = tags.first else { return [:] }
        guard tags.count > 1 else { return [".tag": .string(first)] }
        return [".tag": .string(first), first: union(Array(tags.dropFirst()))]
    }

    /// A union whose member holds another union.
    static func wrapping(_ tag: String, _ inner: JSON) -> JSON {
        [".tag": .string(tag), tag: inner]
    }

    /// The answer as the service words it; `random` gives the summary its number of dots.
    func answer(route: String, random: UInt64) -> SimulatorAnswer {
        let dots = String(repeating: ".", count: Int(random % 4))
        switch self {
        case .malformed(let text):
            return .text("Error in call to API function \"\(route)\": \(text)", status: 400)
        case .route(let error):
            return .json(
                ["error_summary": .string(Self.summary(error) + "/" + dots), "error": error],
                status: 409
            )
        case .token(let tag):
            return .json(
                [
                    "error_summary": .string(tag + "/" + dots),
                    "error": [".tag": .string(tag)],
                ],
                status: 401
            )
        case .pathRoot(let error):
            return .json(
                ["error_summary": .string(Self.summary(error) + "/" + dots), "error": error],
                status: 422
            )
        case .status(let status, let text): return .text(text, status: status)
        }
    }

    private static func summary(_ error: JSON) -> String {
        guard let tag = error[".tag"]?.text else { return "" }
        let inner = error[tag] ?? error["reason"]
        guard let inner, inner[".tag"] != nil else { return tag }
        return tag + "/" + summary(inner)
    }
}

/// A request's argument, read as strictly as Dropbox does: what is not known is refused.
struct DropboxArgument: Sendable {
    let fields: [String: JSON]
    private let place: String

    /// An argument of which all fields are among `known`.
    init(_ json: JSON, known: Set<String>, place: String) throws(DropboxFailure) {
        guard case .object(let fields) = json else {
            throw .malformed("\(place): expected object, got \(json.kindName)")
        }
        for name in fields.keys.sorted() where !known.contains(name) {
            throw .malformed("\(place): unknown field '\(name)'")
        }
        self.fields = fields
        self.place = place
    }

    func required(_ name: String) throws(DropboxFailure) -> JSON {
        guard let value = fields[name] else {
            throw .malformed("\(place): missing required field '\(name)'")
        }
        return value
    }

    func text(_ name: String) throws(DropboxFailure) -> String {
        let value = try required(name)
        guard let text = value.text else {
            throw .malformed("\(place): \(name): expected string, got \(value.kindName)")
        }
        return text
    }

    /// A text that may be left out or null.
    func optionalText(_ name: String) throws(DropboxFailure) -> String? {
        guard let value = fields[name], value != .null else { return nil }
        return try text(name)
    }

    func bool(_ name: String, default fallback: Bool) throws(DropboxFailure) -> Bool {
        guard let value = fields[name] else { return fallback }
        guard let bool = value.bool else {
            throw .malformed("\(place): \(name): expected boolean, got \(value.kindName)")
        }
        return bool
    }

    func integer(
        _ name: String,
        in range: ClosedRange<Int64>,
        default fallback: Int64? = nil
    ) throws(DropboxFailure) -> Int64 {
        guard let value = fields[name], value != .null || fallback == nil else {
            if let fallback { return fallback }
            _ = try required(name)
            return 0
        }
        guard let number = value.integer else {
            throw .malformed("\(place): \(name): expected integer, got \(value.kindName)")
        }
        guard range.contains(number) else {
            throw .malformed(
                "\(place): \(name): \(number) is not within \(range.lowerBound) and "
                    + "\(range.upperBound)"
            )
        }
        return number
    }

    func list(_ name: String, atMost limit: Int) throws(DropboxFailure) -> [JSON] {
        let value = try required(name)
        guard let elements = value.elements else {
            throw .malformed("\(place): \(name): expected list, got \(value.kindName)")
        }
        guard elements.count <= limit else {
            throw .malformed("\(place): \(name): list must have at most \(limit) items")
        }
        return elements
    }

    /// A union's tag, with the value of its member.
    func union(
        _ name: String,
        tags: Set<String>,
        default fallback: String?
    ) throws(DropboxFailure) -> (tag: String, value: JSON) {
        guard let value = fields[name], value != .null || fallback == nil else {
            guard let fallback else {
                _ = try required(name)
                return ("", .null)
            }
            return (fallback, .null)
        }
        guard let tag = value.text ?? value[".tag"]?.text else {
            throw .malformed("\(place): \(name): expected union")
        }
        guard tags.contains(tag) else {
            throw .malformed("\(place): \(name): invalid union tag '\(tag)'")
        }
        return (tag, value)
    }

    /// A struct inside of the argument.
    func nested(_ name: String, known: Set<String>) throws(DropboxFailure) -> DropboxArgument {
        try DropboxArgument(try required(name), known: known, place: "\(place): \(name)")
    }

    /// A path in one of the forms that a route takes.
    func path(_ name: String, _ forms: DropboxPathForms) throws(DropboxFailure) -> String {
        let text = try text(name)
        guard forms.accept(text) else {
            throw .malformed(
                "\(place): \(name): '\(text)' did not match pattern '\(forms.pattern)'"
            )
        }
        return text
    }

    /// A time of exactly whole seconds in UTC.
    func time(_ name: String) throws(DropboxFailure) -> DropboxTime? {
        guard let text = try optionalText(name) else { return nil }
        guard let time = DropboxTime(text) else {
            throw .malformed(
                "\(place): \(name): time data '\(text)' does not match format "
                    + "'%Y-%m-%dT%H:%M:%SZ'"
            )
        }
        return time
    }
}

extension JSON {
    /// The kind of value as Dropbox's messages call it.
    var kindName: String {
        switch self {
        case .null: "null"
        case .bool: "boolean"
        case .integer: "integer"
        case .number: "float"
        case .string: "string"
        case .array: "list"
        case .object: "object"
        }
    }
}
