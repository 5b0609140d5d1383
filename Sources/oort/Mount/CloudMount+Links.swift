import Foundation
import Logging
import OortCatalog
import OortModel
import OortSync
import Synchronization

/// Links by which other people reach an item: made, listed and withdrawn.
extension CloudMount {
    func share(_ request: ShareRequest) async throws(Failure) -> LinkReport {
        let (place, node) = try existing(request.path)
        let (links, wish) = try await wish(request, place, node)
        let account = place.account
        let title = title(of: account)
        let known = try await all(links, of: wish.item, account)
        if let same = known.first(where: { $0.fulfils(wish) }) {
            return report(same, account, place.path, existed: true)
        }
        if links.abilities.onePerItem, let other = known.first {
            throw Failure(
                "\(place.shown) has a link already, \(Self.words(other)), and \(title) gives an item "
                    + "one only.",
                advice: "Take it back first: oort unshare \(Shell.quoted(place.path))"
            )
        }
        do throws(CatalogError) { try await catalog.noteShared(node.inode) } catch {
            throw Failure("\(place.shown) was not shared: the catalog cannot be written: \(error)")
        }
        let made: SharedLink
        do throws(ProviderError) { made = try await links.share(wish) } catch {
            // It may have been made although no answer came, or by another at this moment.
            if error.isOutcomeUnknown || error.kind == .nameTaken,
                let made = await existing(wish, links, account)
            {
                return report(made, account, place.path, existed: false)
            }
            throw refused(error, "\(place.shown) was not shared", links, account, wish)
        }
        return report(
            try await checked(made, wish, known, links, place),
            account,
            place.path,
            existed: false
        )
    }

    /// Checks that the link which a service answered with gives no more than was wished.
    ///
    /// - Throws: `Failure` where it does: a link without the wished password would be handed on as if it
    ///   had one. A link that was made is then withdrawn; one that existed before stays.
    private func checked(
        _ made: SharedLink,
        _ wish: LinkWish,
        _ known: [SharedLink],
        _ links: any LinkSharing,
        _ place: MountedPath
    ) async throws(Failure) -> SharedLink {
        let abilities = links.abilities
        func keeps(_ link: SharedLink) -> Bool {
            link.keeps(wish, precision: abilities.endPrecision)
        }
        if keeps(made) { return made }
        let title = title(of: place.account)
        if let same = known.first(where: { $0.id.isSameText(as: made.id) }) {
            throw Failure(
                "\(place.shown) has a link already, \(Self.words(same)), and \(title) gives that one "
                    + "again instead of one as wished.",
                advice: "Take it back first: oort unshare \(Shell.quoted(place.path))"
            )
        }
        // An answer may have less than the list.
        do throws(Failure) {
            let all = try await all(links, of: wish.item, place.account)
            let told = all.first { $0.id.isSameText(as: made.id) }
            if let told, keeps(told) { return told }
        } catch {
            logger.info("links were not listed", metadata: ["cause": "\(error.message)"])
        }
        let words = "\(title) made a link that gives more than was wished (\(Self.words(made)))"
        guard abilities.withdraws else { throw Failure("\(words), and it cannot be taken back.") }
        do throws(Failure) { try await withdraw(made, links, place.account) } catch {
            throw Failure(
                "\(words), and it could not be taken back: \(error.message)",
                advice: "Try it again: oort unshare \(Shell.quoted(place.path))"
            )
        }
        throw Failure("\(words); it was taken back, and nothing is shared.")
    }

    /// A link that the item has already and that is as wished; nil, too, where the service cannot be asked.
    private func existing(
        _ wish: LinkWish,
        _ links: any LinkSharing,
        _ account: MountedAccount
    ) async -> SharedLink? {
        do throws(Failure) {
            return try await all(links, of: wish.item, account).first { $0.fulfils(wish) }
        } catch {
            logger.info("links were not listed", metadata: ["cause": "\(error.message)"])
            return nil
        }
    }

    /// The wish, checked before the service is asked for anything.
    private func wish(
        _ request: ShareRequest,
        _ place: MountedPath,
        _ node: Node
    ) async throws(Failure) -> (any LinkSharing, LinkWish) {
        let links = try sharing(of: place.account)
        let abilities = links.abilities
        let title = title(of: place.account)
        guard !node.isAccountRoot else {
            throw Failure("\(place.shown) is a whole account; share a folder or file in it.")
        }
        if request.edit == true, !abilities.edits {
            throw Failure(
                "\(title) has links to read only.",
                advice: "Share without --edit."
            )
        }
        if request.password != nil, !abilities.takesPasswords {
            throw Failure(
                "\(title) has no links with a password.",
                advice: "Share without --password-file."
            )
        }
        if node.kind == .folder, !abilities.sharesFolders {
            throw Failure(
                "\(title) has links to files only, and \(place.shown) is a folder.",
                advice: "Share the files in it."
            )
        }
        if let expires = request.expires {
            guard abilities.expires else {
                throw Failure(
                    "\(title) has no links that end by themselves.",
                    advice: "Share without --expires; `oort unshare` ends a link."
                )
            }
            guard expires > Date() else {
                throw Failure("\(StatusText.moment(expires)) is over: no link was made.")
            }
            if let longest = abilities.longest,
                expires.timeIntervalSinceNow > Double(longest.components.seconds) + 1
            {
                throw Failure(
                    "A link of \(title) lasts \(longest.components.seconds / 86_400) days at most.",
                    advice: "Share with an earlier end."
                )
            }
        }
        let reference = try await reference(to: node, at: place)
        try await checkPerson(place.account)
        return (
            links,
            LinkWish(
                item: reference,
                isFolder: node.kind == .folder,
                mayEdit: request.edit ?? false,
                expires: request.expires.map { Timestamp($0).truncated(to: .seconds) },
                password: request.password
            )
        )
    }

    func links(_ request: LinksRequest) async throws(Failure) -> LinksReport {
        var report = LinksReport(links: [], notes: [])
        if let path = request.path, path != mountPoint {
            let place = try mounted(path)
            if place.names.isEmpty {
                try await readAll(place.account, into: &report)
            } else {
                let (place, node) = try existing(path)
                let links = try listable(of: place.account)
                let reference = try await reference(to: node, at: place)
                try await checkPerson(place.account)
                let found = try await all(links, of: reference, place.account)
                report.links = found.map { self.report($0, place.account, place.path) }
                report.listed = 1
                if node.kind == .folder { await readBelow(place, links, into: &report) }
            }
        } else {
            for account in accounts.withLock({ $0.values.sorted { $0.name < $1.name } }) {
                do throws(Failure) { try await readAll(account, into: &report) } catch {
                    report.notes.append(error.message)
                }
            }
        }
        report.links.sort { ($0.path ?? "", $0.url) < ($1.path ?? "", $1.url) }
        return report
    }

    func unshare(_ request: UnshareRequest) async throws(Failure) -> LinksReport {
        if let path = request.path {
            let (place, node) = try existing(path)
            let links = try withdrawable(of: place.account)
            let reference = try await reference(to: node, at: place)
            try await checkPerson(place.account)
            let found = try await all(links, of: reference, place.account)
            guard !found.isEmpty else {
                throw Failure(
                    "\(place.shown) has no link of its own.",
                    advice: "A folder above it may have one: oort share --list"
                )
            }
            for link in found { try await withdraw(link, links, place.account) }
            return LinksReport(
                links: found.map { report($0, place.account, path) },
                notes: []
            )
        }
        let url = request.link ?? ""
        var notes: [String] = []
        for account in accounts.withLock({ $0.values.sorted { $0.name < $1.name } }) {
            guard let links = account.engine.links, links.abilities.withdraws,
                links.abilities.listsAll
            else { continue }
            do throws(Failure) {
                try await checkPerson(account)
                let found = try await all(links, of: nil, account)
                guard let link = found.first(where: { $0.url.isSameText(as: url) }) else {
                    continue
                }
                try await withdraw(link, links, account)
                return LinksReport(
                    links: [report(link, account, path(of: link, account))],
                    notes: []
                )
            } catch { notes.append(error.message) }
        }
        throw Failure(
            (["No account lists this link as its own."] + notes).joined(separator: "\n"),
            advice: "Name the file or folder instead: oort unshare PATH"
        )
    }

    // MARK: What an account can

    private func sharing(of account: MountedAccount) throws(Failure) -> any LinkSharing {
        guard let links = account.engine.links else {
            throw Failure("\(account.name): \(title(of: account)) has no links to share.")
        }
        return links
    }

    private func listable(of account: MountedAccount) throws(Failure) -> any LinkSharing {
        let links = try sharing(of: account)
        guard links.abilities.lists else {
            throw Failure("\(account.name): \(title(of: account)) keeps no list of links.")
        }
        return links
    }

    private func withdrawable(of account: MountedAccount) throws(Failure) -> any LinkSharing {
        let links = try sharing(of: account)
        guard links.abilities.withdraws else {
            throw Failure(
                "\(account.name): a link of \(title(of: account)) cannot be taken back; it ends by "
                    + "itself.",
                advice: "Move or rename the file to end it now."
            )
        }
        return links
    }

    private func checkPerson(_ account: MountedAccount) async throws(Failure) {
        do throws(ProviderError) { try await account.engine.checkPerson() } catch {
            throw failure(error, "\(account.name) cannot be asked", account)
        }
    }

    // MARK: At the service

    private func readAll(
        _ account: MountedAccount,
        into report: inout LinksReport
    ) async throws(Failure) {
        let links = try listable(of: account)
        guard links.abilities.listsAll else {
            throw Failure(
                "\(account.name): \(title(of: account)) lists the links of one file or folder only; "
                    + "name it: oort share --list PATH"
            )
        }
        try await checkPerson(account)
        for link in try await all(links, of: nil, account) {
            report.links.append(self.report(link, account, path(of: link, account)))
        }
        report.listed = (report.listed ?? 0) + 1
    }

    /// The links of what lies in a folder, where the service lists more than those of one item.
    private func readBelow(
        _ folder: MountedPath,
        _ links: any LinkSharing,
        into report: inout LinksReport
    ) async {
        guard links.abilities.listsAll else {
            report.hints = [
                "\(title(of: folder.account)) lists the links of one file or folder only: what lies "
                    + "in \(folder.shown) may have some."
            ]
            return
        }
        let found: [SharedLink]
        do throws(Failure) { found = try await all(links, of: nil, folder.account) } catch {
            report.notes.append("What lies in \(folder.shown) may have some: \(error.message)")
            return
        }
        var elsewhere = 0
        for link in found {
            guard let path = path(of: link, folder.account) else {
                elsewhere += 1
                continue
            }
            guard path.begins(with: folder.path + "/") else { continue }
            report.links.append(self.report(link, folder.account, path))
        }
        if elsewhere > 0 {
            report.hints = [
                "\(elsewhere) more link\(elsewhere == 1 ? "" : "s") of \(folder.account.name) lead to "
                    + "what is not in the mount: oort share --list"
            ]
        }
    }

    private func all(
        _ links: any LinkSharing,
        of item: ItemReference?,
        _ account: MountedAccount
    ) async throws(Failure) -> [SharedLink] {
        guard links.abilities.lists else { return [] }
        var found: [SharedLink] = []
        var page: PageToken?
        var walk = PageWalk()
        do throws(ProviderError) {
            repeat {
                if let page { try walk.goOn(to: page.rawValue) }
                let answer = try await links.links(of: item, page: page)
                found += answer.links
                page = answer.next
            } while page != nil
        } catch {
            throw refused(error, "The links of \(account.name) cannot be read", links, account)
        }
        return found
    }

    private func withdraw(
        _ link: SharedLink,
        _ links: any LinkSharing,
        _ account: MountedAccount
    ) async throws(Failure) {
        do throws(ProviderError) { try await links.withdraw(link) } catch {
            throw refused(error, "The link was not taken back", links, account)
        }
    }

    /// A refusal in words; where a sign-in may lack the right to share, how to get it.
    private func refused(
        _ error: ProviderError,
        _ what: String,
        _ links: any LinkSharing,
        _ account: MountedAccount,
        _ wish: LinkWish? = nil
    ) -> Failure {
        if error.kind == .unsupported, wish?.expires != nil || wish?.password != nil {
            return failure(
                error,
                what,
                account,
                advice: "The account's plan may have no links with an end or a password: share "
                    + "without --expires and --password-file."
            )
        }
        let scopes = links.abilities.scopes
        guard error.kind == .noPermission, !scopes.isEmpty else {
            return failure(error, what, account)
        }
        return failure(
            error,
            what,
            account,
            advice: "If the sign-in lacks \(scopes.joined(separator: " and ")): tick them in the "
                + "registration of the app, then sign in again: oort login \(account.service) "
                + "--name \(Shell.quoted(account.name))"
        )
    }

    // MARK: In words

    private static func words(_ link: SharedLink) -> String {
        let rights =
            switch link.access {
            case .read: "to read"
            case .comment: "to read and comment"
            case .edit: "to edit"
            case .other: "with other rights than to read or to edit"
            }
        return rights + (link.hasPassword ? ", with a password" : "")
            + (link.expires.map { ", until \(StatusText.moment($0.date))" } ?? "")
    }

    private func report(
        _ link: SharedLink,
        _ account: MountedAccount,
        _ path: String?,
        existed: Bool? = nil
    ) -> LinkReport {
        LinkReport(
            account: account.name,
            path: path,
            url: link.url,
            mayEdit: link.mayEdit,
            mayComment: link.access == .comment ? true : nil,
            hasOtherRights: link.access == .other ? true : nil,
            expires: link.expires?.date,
            hasPassword: link.hasPassword,
            existed: existed
        )
    }

    /// The path under the mount point of what a link shares; nil where it is not in the tree.
    private func path(of link: SharedLink, _ account: MountedAccount) -> String? {
        do throws(CatalogError) {
            if let item = link.item,
                let node = try catalog.node(remoteID: item, account: account.id),
                let names = try catalog.shownPath(of: node.inode)
            {
                return path(account, names)
            }
        } catch {
            logger.warning("what a link shares was not looked up", metadata: ["cause": "\(error)"])
        }
        return link.path.map { path(account, service: $0) }
    }
}
