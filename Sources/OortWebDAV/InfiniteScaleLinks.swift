import Foundation
import OortModel
import OortTransport

/// Public links of an Infinite Scale or OpenCloud, made by its Graph.
///
/// An item may have several. Where the server wants a password with each, it says so in words.
///
/// Source: github.com/opencloud-eu/opencloud, `services/graph/pkg/service/v0`
/// (`api_driveitem_permissions_links.go`, `service.go`).
struct InfiniteScaleLinks: LinkSharing {
    let client: WebDAVClient

    private struct Permission: Decodable {
        struct Link: Decodable {
            var type: String?
            var webUrl: String?
        }
        var id: String?
        var link: Link?
        var hasPassword: Bool?
        var expirationDateTime: String?
    }

    private struct Permissions: Decodable { var value: [Permission]? }

    private struct SharedItems: Decodable {
        struct Item: Decodable {
            var id: String?
            var permissions: [Permission]?
        }
        var value: [Item]?
    }

    private struct Refusal: Decodable {
        struct Inner: Decodable { var message: String? }
        var error: Inner?
    }

    private struct Wish: Encodable {
        var type: String
        var password: String?
        var expirationDateTime: String?
    }

    var abilities: LinkAbilities {
        var abilities = LinkAbilities()
        abilities.edits = true
        abilities.expires = true
        abilities.takesPasswords = true
        abilities.endPrecision = .seconds(86_400)
        return abilities
    }

    private var graph: InfiniteScaleSpaces { InfiniteScaleSpaces(api: client.api) }

    private func id(_ path: RemotePath, isFolder: Bool) async throws(ProviderError) -> String {
        guard let id = try await client.entry(at: path, isFolder ? .folder : .file).key else {
            throw ProviderError(.unsupported, detail: "the server names no id of it")
        }
        return id
    }

    private func item(_ id: String, _ parts: [String]) -> [String] {
        ["v1beta1", "drives", client.address.space?.id ?? "", "items", id] + parts
    }

    private func ask<Value: Decodable>(
        _ request: HTTPRequest,
        as type: Value.Type
    ) async throws(ProviderError) -> Value {
        let body = try await answer(request).body
        do {
            return try JSONDecoder().decode(Value.self, from: Data(body))
        } catch {
            throw ProviderError(
                .malformedAnswer,
                detail: "links are not what such a server answers"
            )
        }
    }

    private func answer(_ request: HTTPRequest) async throws(ProviderError) -> HTTPResponse {
        let response = try await client.api.exchange(request)
        guard (200..<300).contains(response.head.status) else {
            let error = WebDAVErrors.error(response, about: .item)
            let words = try? JSONDecoder().decode(Refusal.self, from: Data(response.body))
                .error?.message
            guard let words, !words.isEmpty else { throw error }
            throw ProviderError(error.kind, detail: String(words.prefix(200)))
        }
        return response
    }

    func share(_ wish: LinkWish) async throws(ProviderError) -> SharedLink {
        let id = try await id(wish.item.path, isFolder: wish.isFolder)
        let body = Wish(
            type: wish.mayEdit ? "edit" : "view",
            password: wish.password,
            expirationDateTime: wish.expires.map { $0.date.formatted(.iso8601) }
        )
        var request = graph.request("POST", item(id, ["createLink"]), repetition: .onlyIfNotDone)
        request.headers.append(("Content-Type", "application/json"))
        do {
            request.body = .bytes(Array(try JSONEncoder().encode(body)))
        } catch { throw ProviderError(.badRequest, detail: "the wish cannot be written") }
        let made = try await ask(request, as: Permission.self)
        guard let link = link(made, of: id, at: wish.item.path) else {
            throw ProviderError(.malformedAnswer, detail: "a link without an address")
        }
        return link
    }

    func links(
        of item: ItemReference?,
        page: PageToken?
    ) async throws(ProviderError) -> LinkPage {
        guard let item else { return try await allLinks() }
        let id = try await id(item.path, isFolder: false)
        let request = graph.request("GET", self.item(id, ["permissions"]))
        let all = try await ask(request, as: Permissions.self).value ?? []
        return LinkPage(links: all.compactMap { link($0, of: id, at: item.path) }, next: nil)
    }

    /// All links of the person in this space; where their items lie is asked one by one.
    private func allLinks() async throws(ProviderError) -> LinkPage {
        let request = graph.request("GET", ["v1beta1", "me", "drive", "sharedByMe"])
        var links: [SharedLink] = []
        for item in try await ask(request, as: SharedItems.self).value ?? [] {
            let own = (item.permissions ?? []).filter { $0.link?.webUrl != nil }
            guard !own.isEmpty, let id = item.id, let space = client.address.space?.id,
                id.begins(with: space + "!"), let path = try await path(of: id)
            else { continue }
            links += own.compactMap { link($0, of: id, at: path) }
        }
        return LinkPage(links: links, next: nil)
    }

    /// Where an item lies in the account; nil where it lies outside of its folder.
    private func path(of id: String) async throws(ProviderError) -> RemotePath? {
        let parts = try await graph.names(toItem: id)
        let own = client.address.folder
        guard parts.count > own.count, zip(parts, own).allSatisfy({ $0.isSameText(as: $1) })
        else { return nil }
        return RemotePath(Array(parts[own.count...]))
    }

    func withdraw(_ link: SharedLink) async throws(ProviderError) {
        // A link's id is the item's and its own: the server wants both.
        guard let (item, permission) = link.id.cut(atFirst: " ") else {
            throw ProviderError(.badRequest, detail: "a link of another kind")
        }
        let parts = self.item(String(item), ["permissions", String(permission)])
        do throws(ProviderError) {
            _ = try await answer(graph.request("DELETE", parts))
        } catch {
            guard error.kind == .notFound else { throw error }
        }
    }

    private func link(
        _ permission: Permission,
        of item: String,
        at path: RemotePath
    ) -> SharedLink? {
        // An internal link opens nothing for those who have no right of their own.
        guard let id = permission.id, let link = permission.link, let url = link.webUrl,
            !url.isEmpty, link.type != "internal"
        else { return nil }
        var shared = SharedLink(id: "\(item) \(id)", url: url, path: path)
        shared.access =
            switch link.type {
            case "view": .read
            case "edit": .edit
            default: .other
            }
        shared.hasPassword = permission.hasPassword ?? false
        shared.expires = permission.expirationDateTime.flatMap { Timestamp(rfc3339: $0) }
        return shared
    }
}
