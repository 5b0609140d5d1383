import Foundation
import OortModel
import OortTransport

/// Public links of a Nextcloud, made by its sharing programs (OCS).
///
/// An item may have several, each with rights, an end and a password of its own. A link ends with a day,
/// not with a second.
///
/// Source: docs.nextcloud.com/server/latest/developer_manual/client_apis/OCS/ocs-share-api.html.
struct NextcloudLinks: LinkSharing {
    let client: WebDAVClient

    /// The server's number for a link among the kinds of shares.
    private static let link = 3
    /// Reading; with the others a file is changed, and with all a folder.
    private static let (read, update, create, delete, shareOn) = (1, 2, 4, 8, 16)

    private struct Envelope<Value: Decodable>: Decodable {
        struct Inner: Decodable { var data: Value }
        var ocs: Inner
    }

    private struct Refusal: Decodable {
        struct Inner: Decodable { var meta: Meta }
        struct Meta: Decodable { var message: String? }
        var ocs: Inner
    }

    /// A number that some versions write as text.
    private struct ShareID: Decodable {
        var text: String
        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            text = try (try? value.decode(String.self)) ?? String(value.decode(Int64.self))
        }
    }

    private struct Share: Decodable {
        var id: ShareID
        var share_type: Int?
        var url: String?
        var path: String?
        var permissions: Int?
        /// `file` or `folder`.
        var item_type: String?
        var expiration: String?
        var password: String?
    }

    var abilities: LinkAbilities {
        var abilities = LinkAbilities()
        abilities.edits = true
        abilities.expires = true
        abilities.takesPasswords = true
        abilities.endPrecision = .seconds(86_400)
        return abilities
    }

    /// The item's path from the person's own root, as the sharing programs want it.
    private func place(_ path: RemotePath) -> String {
        "/" + (client.address.folder + path.parts).joined(separator: "/")
    }

    private func request(
        _ method: String,
        _ parts: [String],
        _ query: [(String, String)] = [],
        form: [(String, String)] = []
    ) -> HTTPRequest {
        func written(_ pairs: [(String, String)]) -> String {
            pairs.map { "\($0)=\(PercentEncoding.segment($1))" }.joined(separator: "&")
        }
        let address = client.address.program(
            ["ocs", "v2.php", "apps", "files_sharing", "api", "v1", "shares"] + parts
        )
        var request = HTTPRequest(
            method: method,
            url: "\(address)?\(written([("format", "json")] + query))",
            headers: [("OCS-APIRequest", "true"), ("Accept", "application/json")],
            repetition: method == "POST" ? .onlyIfNotDone : .harmless
        )
        if !form.isEmpty {
            request.headers.append(("Content-Type", "application/x-www-form-urlencoded"))
            request.body = .bytes(Array(written(form).utf8))
        }
        return request
    }

    private func ask<Value: Decodable>(
        _ request: HTTPRequest,
        as type: Value.Type
    ) async throws(ProviderError) -> Value {
        let body = try await answer(request).body
        do {
            return try JSONDecoder().decode(Envelope<Value>.self, from: Data(body)).ocs.data
        } catch {
            throw ProviderError(.malformedAnswer, detail: "shares are not what a cloud answers")
        }
    }

    private func answer(_ request: HTTPRequest) async throws(ProviderError) -> HTTPResponse {
        let response = try await client.api.exchange(request)
        guard (200..<300).contains(response.head.status) else {
            let error = WebDAVErrors.error(response, about: .item)
            // What a server's rules want (a password, an end) it says in words only.
            let words = try? JSONDecoder().decode(Refusal.self, from: Data(response.body))
                .ocs.meta.message
            guard let words, !words.isEmpty else { throw error }
            throw ProviderError(error.kind, detail: String(words.prefix(200)))
        }
        return response
    }

    func share(_ wish: LinkWish) async throws(ProviderError) -> SharedLink {
        let write = Self.editing(isFolder: wish.isFolder)
        var form = [
            ("path", place(wish.item.path)), ("shareType", String(Self.link)),
            ("permissions", String(wish.mayEdit ? write : Self.read)),
        ]
        if let password = wish.password { form.append(("password", password)) }
        if let expires = wish.expires { form.append(("expireDate", Self.day(expires))) }
        let share = try await ask(request("POST", [], form: form), as: Share.self)
        guard let link = link(share) else {
            throw ProviderError(.malformedAnswer, detail: "a link without an address")
        }
        return link
    }

    func links(
        of item: ItemReference?,
        page: PageToken?
    ) async throws(ProviderError) -> LinkPage {
        let query = item.map { [("path", place($0.path)), ("reshares", "true")] } ?? []
        let shares = try await ask(request("GET", [], query), as: [Share].self)
        return LinkPage(
            links: shares.filter { $0.share_type == Self.link }.compactMap { link($0) },
            next: nil
        )
    }

    func withdraw(_ link: SharedLink) async throws(ProviderError) {
        do throws(ProviderError) { _ = try await answer(request("DELETE", [link.id])) } catch {
            guard error.kind == .notFound else { throw error }
        }
    }

    private func link(_ share: Share) -> SharedLink? {
        guard let url = share.url, !url.isEmpty else { return nil }
        let own = client.address.folder
        let parts = (share.path ?? "").parts(between: "/").map(String.init).filter { !$0.isEmpty }
        var link = SharedLink(id: share.id.text, url: url)
        if parts.count > own.count, zip(parts, own).allSatisfy({ $0.isSameText(as: $1) }) {
            link.path = RemotePath(Array(parts[own.count...]))
        }
        link.access = Self.access(share.permissions, isFolder: share.item_type == "folder")
        link.hasPassword = share.password.map { !$0.isEmpty } ?? false
        link.expires = share.expiration.flatMap { Self.end(ofDay: $0) }
        return link
    }

    /// What the rights of a link allow; the right to share on is no right of whoever has a link.
    static func access(_ permissions: Int?, isFolder: Bool) -> LinkAccess {
        guard let permissions else { return .other }
        let rights = permissions & ~Self.shareOn
        if rights == Self.read { return .read }
        let edit = Self.editing(isFolder: isFolder)
        // Of a file the rights to create and to delete in it say nothing.
        return isFolder && rights == edit || !isFolder && rights & edit == edit ? .edit : .other
    }

    private static func editing(isFolder: Bool) -> Int {
        isFolder ? read | update | create | delete : read | update
    }

    // MARK: Days

    private static var calendar: Date.ISO8601FormatStyle {
        Date.ISO8601FormatStyle(timeZone: .current).year().month().day()
    }

    private static func day(_ time: Timestamp) -> String { time.date.formatted(calendar) }

    /// The last second of a day such as `2026-11-30 00:00:00`.
    private static func end(ofDay text: String) -> Timestamp? {
        guard let day = try? Date(String(text.prefix(10)), strategy: calendar) else { return nil }
        return Timestamp(seconds: Int64(day.timeIntervalSince1970) + 86_399)
    }
}
