import OortModel

/// The form in which the programs beside WebDAV (`ocs/v1.php`, `ocs/v2.php`) answer.
enum OCSWords {
    /// An answer as the request wants it: XML but for who asks for JSON.
    ///
    /// By `v1.php` each outcome has the status 200 of HTTP, and its own code says 100 for success.
    static func put(_ answer: SimulatorAnswer, for request: SimulatorRequest) -> SimulatorAnswer {
        guard case .bytes(let bytes) = answer.body,
            let ocs = JSON(parsing: bytes)?["ocs"], var meta = ocs["meta"]
        else { return answer }
        var answer = answer
        if request.parts.contains("v1.php") {
            if answer.status == 200 { meta = meta.merging(["statuscode": .integer(100)]) }
            answer.status = 200
        }
        let whole: JSON = ["meta": meta, "data": ocs["data"] ?? .null]
        let format = request.query("format") ?? request.header("Accept") ?? ""
        guard !format.contains("json") else {
            answer.body = .bytes(JSON.object(["ocs": whole]).bytes)
            return answer
        }
        let text = "<?xml version=\"1.0\"?>\n<ocs>\(xml(whole))</ocs>\n"
        return SimulatorAnswer(
            status: answer.status,
            headers: [("Content-Type", "application/xml; charset=utf-8")],
            body: .bytes(Array(text.utf8))
        )
    }

    private static func xml(_ value: JSON) -> String {
        switch value {
        case .null: ""
        case .bool(let isTrue): isTrue ? "1" : ""
        case .string(let text): DAVXML.escaped(text)
        case .array(let values): values.map { "<element>\(xml($0))</element>" }.joined()
        case .object(let fields):
            fields.sorted { $0.key < $1.key }
                .map { "<\($0.key)>\(xml($0.value))</\($0.key)>" }.joined()
        default: value.integer.map(String.init) ?? value.number.map { "\($0)" } ?? ""
        }
    }
}
