import Foundation
import OortModel
import OortTransport

/// The parts of Infinite Scale and OpenCloud that are no WebDAV: who is signed in, and which spaces there
/// are (the LibreGraph, github.com/opencloud-eu/libre-graph-api).
struct InfiniteScaleSpaces: Sendable {
    let api: WebDAVAPI

    /// Who is signed in.
    struct Person: Decodable, Sendable {
        var id: String
        var displayName: String?
        var mail: String?
    }

    private struct Drive: Decodable {
        struct Root: Decodable {
            struct Deleted: Decodable { var state: String? }
            var deleted: Deleted?
        }
        var id: String?
        var name: String?
        var driveType: String?
        var driveAlias: String?
        var root: Root?
    }

    private struct Drives: Decodable { var value: [Drive] }

    /// A request to the Graph.
    func request(
        _ method: String,
        _ parts: [String],
        repetition: HTTPRequest.Repetition = .harmless
    ) -> HTTPRequest {
        HTTPRequest(
            method: method,
            url: api.address.program(["graph"] + parts),
            headers: [("Accept", "application/json")],
            repetition: repetition
        )
    }

    private func get<Value: Decodable>(
        _ type: Value.Type,
        _ parts: [String],
        isSignIn: Bool
    ) async throws(ProviderError) -> Value {
        let response = try await api.exchange(request("GET", parts), isSignIn: isSignIn)
        guard response.head.status == 200 else {
            throw WebDAVErrors.error(response, about: .item)
        }
        do {
            return try JSONDecoder().decode(Value.self, from: Data(response.body))
        } catch {
            throw ProviderError(
                .malformedAnswer,
                detail: "\(parts.joined(separator: "/")) is not what such a server answers"
            )
        }
    }

    /// The names on the way from a space's root to an item, byte for byte; none of the root, and none where
    /// the server does not tell: it answers an empty path then (reva, `meta.go` in `ocdav`).
    func names(toItem id: String) async throws(ProviderError) -> [String] {
        let name = XMLName.owncloud("meta-path-for-user")
        let (responses, _) = try await api.look(
            at: api.address.program(["dav", "meta", id]) + "/",
            depth: 0,
            properties: [name]
        )
        let path = responses.first?.properties[name]?.text ?? ""
        return path.parts(between: "/").map(String.init).filter { !$0.isEmpty }
    }

    func person(isSignIn: Bool) async throws(ProviderError) -> Person {
        try await get(Person.self, ["v1.0", "me"], isSignIn: isSignIn)
    }

    /// The space that a person means: by its name, its address or its id; the person's own where none
    /// is named.
    ///
    /// - Throws: `.unsupported` with the names that there are.
    func space(_ wish: String?) async throws(ProviderError) -> WebDAVSpace {
        let drives = try await get(Drives.self, ["v1.0", "me", "drives"], isSignIn: false).value
        // What others share lies in their spaces, and is mounted in a virtual one.
        let usable = drives.filter {
            ["personal", "project"].contains($0.driveType ?? "") && $0.id?.isEmpty == false
                && $0.root?.deleted?.state != "trashed"
        }
        let found =
            if let wish {
                usable.first { $0.id?.isSameText(as: wish) == true }
                    ?? usable.first { $0.driveAlias?.isSameText(as: wish) == true }
                    ?? usable.first { $0.name?.isSameText(as: wish) == true }
                    ?? usable.first { $0.name?.lowercased() == wish.lowercased() }
            } else {
                usable.first { $0.driveType == "personal" }
            }
        guard let found, let id = found.id else {
            let names = usable.compactMap(\.name).map { "\"\($0)\"" }.sorted()
            throw ProviderError(
                .unsupported,
                detail: (wish.map { "there is no space \"\($0)\"" }
                    ?? "there is no space of the person's own")
                    + (names.isEmpty ? "" : "; there are \(names.joined(separator: ", "))")
            )
        }
        return WebDAVSpace(
            id: id,
            name: found.name ?? id,
            isPersonal: found.driveType == "personal"
        )
    }
}
