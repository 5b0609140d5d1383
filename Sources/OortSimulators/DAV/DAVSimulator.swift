import Foundation
import OortModel

/// What the simulated servers of ownCloud's family do alike.
protocol DAVSimulator: SimulatedService {
    /// The server's name.
    static var host: String { get }
}

extension DAVSimulator {
    /// The trouble of a whole server, in HTTP's own words.
    static func answer(status: Int, retryAfterSeconds: Int?) -> SimulatorAnswer {
        SimulatorAnswer(
            status: status,
            headers: retryAfterSeconds.map { [("Retry-After", String($0))] } ?? []
        )
    }

    /// Fills the account with what the demo and the tests begin with.
    func fillWithSample() {
        account.withTree { tree in
            SampleAccount(
                allowsDuplicates: false,
                allowsSlashes: false,
                allowsShortcuts: false,
                nativeName: { _, _ in nil }
            ).fill(&tree)
        }
    }

    // MARK: Requests

    /// The name and the password of a request; nil where it has none.
    static func credentials(_ request: SimulatorRequest) -> (user: String, password: String)? {
        guard let value = request.header("Authorization"), value.lowercased().hasPrefix("basic "),
            let bytes = Base64.decode(String(value.dropFirst(6))),
            let (user, password) = String(decoding: bytes, as: UTF8.self).cut(atFirst: ":")
        else { return nil }
        return (String(user), String(password))
    }

    /// The path of something, from the client's own view of the server.
    func href(_ request: SimulatorRequest, _ parts: [String]) -> String {
        let whole = request.url(host: Self.host, path: "/" + DAVXML.encoded(parts))
        guard let scheme = whole.firstRange(of: "://"),
            let slash = whole[scheme.upperBound...].firstIndex(of: "/")
        else { return whole }
        return String(whole[slash...])
    }

    /// The names in the path of a request's destination; nil where it has none.
    static func destinationParts(_ request: SimulatorRequest) -> [String]? {
        guard var text = request.header("Destination").map({ $0[...] }) else { return nil }
        if let scheme = text.firstRange(of: "://") {
            guard let slash = text[scheme.upperBound...].firstIndex(of: "/") else { return nil }
            text = text[slash...]
        }
        var parts = text.split(separator: "/").map { $0.removingPercentEncoding ?? String($0) }
        if parts.first == Self.host { parts.removeFirst() }
        return parts
    }

    // MARK: Items

    /// A copy of an item and of all below it, with its time.
    static func copy(
        _ item: SimulatedItem,
        to parent: String,
        name: String,
        _ tree: inout SimulatedTree
    ) {
        let made = tree.create(
            name,
            in: parent,
            kind: item.kind,
            content: item.head?.content,
            modifiedTime: item.modifiedTime
        )
        for child in tree.children(of: item.id) where child.id != made.id {
            copy(child, to: made.id, name: child.name, &tree)
        }
    }

    /// A picture of one pixel, of what is a picture by its name; nil of anything else.
    static func picture(of item: SimulatedItem) -> SimulatorAnswer? {
        let pixel =
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5"
            + "CYII="
        guard DAVXML.hasPreview(item), let picture = Base64.decode(pixel) else { return nil }
        return SimulatorAnswer(
            status: 200,
            headers: [("Content-Type", "image/png")],
            body: .bytes(picture)
        )
    }
}
