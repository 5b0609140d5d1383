import OortModel
import OortTransport

/// Shared links at Box: an item has one; an end and a password are for paid plans.
struct BoxLinks: LinkSharing {
    let provider: BoxProvider

    private static let query = [("fields", "shared_link")]

    var abilities: LinkAbilities {
        var abilities = LinkAbilities()
        abilities.expires = true
        abilities.takesPasswords = true
        abilities.onePerItem = true
        // Box lists no links of the whole account.
        abilities.listsAll = false
        return abilities
    }

    func share(_ wish: LinkWish) async throws(ProviderError) -> SharedLink {
        let id = try BoxID(wish.item.id)
        // Another wish would change the link that people have.
        if let known = try await link(of: id) {
            guard known.fulfils(wish) else {
                throw ProviderError(.nameTaken, detail: "the item has a link already")
            }
            return known
        }
        let made: SharedLink?
        do throws(ProviderError) {
            made = try await set(
                BoxWire.Sharing.Link(
                    password: wish.password,
                    unshared_at: wish.expires?.rfc3339(.seconds)
                ),
                of: id
            )
        } catch {
            // What the plan or the enterprise does not allow.
            guard error.kind == .noPermission else { throw error }
            throw ProviderError(.unsupported, detail: error.detail)
        }
        guard let made else {
            throw ProviderError(.malformedAnswer, detail: "a link without an address")
        }
        return made
    }

    func links(
        of item: ItemReference?,
        page: PageToken?
    ) async throws(ProviderError) -> LinkPage {
        guard let item else {
            throw ProviderError(.unsupported, detail: "Box lists no links of an account")
        }
        let link = try await link(of: try BoxID(item.id))
        return LinkPage(links: link.map { [$0] } ?? [], next: nil)
    }

    func withdraw(_ link: SharedLink) async throws(ProviderError) {
        do throws(ProviderError) {
            _ = try await set(nil, of: try BoxID(ItemID(link.id)))
        } catch {
            guard error.kind == .notFound else { throw error }
        }
    }

    private func link(of id: BoxID) async throws(ProviderError) -> SharedLink? {
        let wire: BoxWire.Item = try await provider.api.send(
            provider.api.get(id.path, Self.query)
        )
        return SharedLink(wire, of: id)
    }

    private func set(
        _ link: BoxWire.Sharing.Link?,
        of id: BoxID
    ) async throws(ProviderError) -> SharedLink? {
        let wire: BoxWire.Item = try await provider.api.send(
            try provider.api.request(
                "PUT",
                provider.api.url(id.path, Self.query),
                BoxWire.Sharing(shared_link: link),
                repetition: .harmless
            )
        )
        return SharedLink(wire, of: id)
    }
}

extension SharedLink {
    /// The link of an item; nil where it has none, or one for those only who may see it anyway.
    fileprivate init?(_ wire: BoxWire.Item, of id: BoxID) {
        guard let link = wire.shared_link, link.access != "collaborators" else { return nil }
        self.init(id: id.itemID.rawValue, url: link.url, item: id.itemID)
        expires = link.unshared_at.flatMap { Timestamp(rfc3339: $0) }
        hasPassword = link.is_password_enabled ?? false
        access =
            switch link.effective_permission {
            case "can_download", "can_preview", nil: .read
            case "can_edit": .edit
            default: .other
            }
    }
}
