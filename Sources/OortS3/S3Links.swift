import Foundation
import OortModel
import OortTransport

/// Links at S3: a file's address, signed with the account's keys for seven days at most.
///
/// The store knows nothing of them, so they can be neither listed nor taken back; with keys that live for
/// a while only, a link ends with them.
struct S3Links: LinkSharing {
    let client: S3Client
    let tokens: any AccessTokens

    /// The longest that stores take a signature for.
    private static let longest = Duration.seconds(604_800)

    var abilities: LinkAbilities {
        var abilities = LinkAbilities()
        abilities.expires = true
        abilities.sharesFolders = false
        abilities.lists = false
        abilities.listsAll = false
        abilities.withdraws = false
        abilities.longest = Self.longest
        return abilities
    }

    func share(_ wish: LinkWish) async throws(ProviderError) -> SharedLink {
        let entry = try await client.entry(at: wish.item.path)
        guard entry.kind == .file else {
            throw ProviderError(.notAFile, detail: "only files have links")
        }
        let now = client.api.signer.serviceTime
        let left = wish.expires.map { $0.date.timeIntervalSince(now).rounded(.down) }
        var validity = left.map { min(Duration.seconds($0), Self.longest) } ?? Self.longest
        guard validity >= .seconds(1) else {
            throw ProviderError(.badRequest, detail: "the end of the link is over")
        }
        let address = try client.address(of: wish.item.path)
        let url: String
        do throws(TransportError) {
            let secret = try await tokens.token()
            // A link ends with the keys that it is signed with.
            if let end = (try? S3Keys(keyFile: Array(secret.utf8)))?.expires {
                let rest = Duration.seconds(end.timeIntervalSince(now).rounded(.down))
                validity = max(.seconds(1), min(validity, rest))
            }
            url = try client.api.signer.presigned(address, with: secret, validity: validity)
        } catch {
            if case .signedOut(let words) = error {
                throw ProviderError(.unsupported, detail: words)
            }
            throw ProviderError(error)
        }
        var link = SharedLink(id: url, url: url, path: wish.item.path)
        link.expires = Timestamp(
            seconds: Int64(now.timeIntervalSince1970) + validity.components.seconds
        )
        return link
    }

    func links(
        of item: ItemReference?,
        page: PageToken?
    ) async throws(ProviderError) -> LinkPage {
        throw ProviderError(.unsupported, detail: "a store does not know of links")
    }

    func withdraw(_ link: SharedLink) async throws(ProviderError) {
        throw ProviderError(.unsupported, detail: "a signed link ends by itself")
    }
}
