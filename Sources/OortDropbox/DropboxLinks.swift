import OortModel

/// Shared links at Dropbox: an item has one, whose rights are those that it was made with.
///
/// An end and a password are refused to basic accounts (settings_error/not_authorized).
struct DropboxLinks: LinkSharing {
    let provider: DropboxProvider

    var abilities: LinkAbilities {
        var abilities = LinkAbilities()
        abilities.edits = true
        abilities.expires = true
        abilities.takesPasswords = true
        abilities.onePerItem = true
        abilities.scopes = ["sharing.read", "sharing.write"]
        return abilities
    }

    func share(_ wish: LinkWish) async throws(ProviderError) -> SharedLink {
        let settings = DropboxWire.LinkSettings(
            access: wish.mayEdit ? "editor" : nil,
            expires: wish.expires?.rfc3339(.seconds),
            require_password: wish.password == nil ? nil : true,
            link_password: wish.password
        )
        let made: DropboxWire.SharedLink = try await provider.api.call(
            "sharing/create_shared_link_with_settings",
            DropboxWire.CreateLink(
                path: provider.address(wish.item),
                // All of them empty are refused.
                settings: settings.isEmpty ? nil : settings
            )
        )
        let link = SharedLink(made)
        // Not all kinds of files can be written by link.
        if wish.mayEdit, made.link_permissions?.link_access_level?.tag == "viewer" {
            try await withdraw(link)
            throw ProviderError(.unsupported, detail: "this file cannot be changed by link")
        }
        return link
    }

    func links(
        of item: ItemReference?,
        page: PageToken?
    ) async throws(ProviderError) -> LinkPage {
        let answer: DropboxWire.SharedLinks = try await provider.api.call(
            "sharing/list_shared_links",
            DropboxWire.ListLinks(
                path: item.map { provider.address($0) },
                cursor: page?.rawValue,
                direct_only: item == nil ? nil : true
            )
        )
        return LinkPage(
            links: answer.links.filter(\.isOpen).map { SharedLink($0) },
            next: answer.has_more ? answer.cursor.map { PageToken($0) } : nil
        )
    }

    func withdraw(_ link: SharedLink) async throws(ProviderError) {
        do throws(ProviderError) {
            let _: DropboxWire.Nothing = try await provider.api.call(
                "sharing/revoke_shared_link",
                DropboxWire.LinkAddress(url: link.id)
            )
        } catch {
            guard error.kind == .notFound else { throw error }
        }
    }
}

extension SharedLink {
    fileprivate init(_ link: DropboxWire.SharedLink) {
        self.init(
            id: link.url,
            url: link.url,
            item: link.id.map { ItemID($0) },
            path: link.path_lower.map {
                RemotePath($0.parts(between: "/").dropFirst().map(String.init))
            }
        )
        let permissions = link.link_permissions
        access =
            switch permissions?.link_access_level?.tag {
            case "viewer", nil: .read
            case "editor": .edit
            default: .other
            }
        expires = link.expires.flatMap { Timestamp(rfc3339: $0) }
        hasPassword =
            permissions?.require_password == true
            || permissions?.resolved_visibility?.tag == "password"
    }
}
