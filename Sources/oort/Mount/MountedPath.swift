import OortCatalog
import OortModel
import Synchronization

/// What an absolute path under the mount point leads to.
struct MountedPath: Sendable {
    /// The account.
    var account: MountedAccount
    /// The shown names from the account's root down; none for the account itself.
    var names: [String]
    /// The nearest folder above it, or itself, that is in the tree.
    var folder: Node
    /// What lies there; nil where nothing does.
    var node: Node?
    /// The path as it was named.
    var path: String

    /// The path as one word, fit for a terminal.
    var shown: String { TerminalText.line(path) }
}

extension CloudMount {
    /// Follows a path into an account that is signed in.
    ///
    /// - Throws: `Failure` naming the path where it is not of the mount, or of an account that is not
    ///   signed in.
    func mounted(_ path: String) throws(Failure) -> MountedPath {
        let shown = TerminalText.line(path)
        guard path != mountPoint else {
            throw Failure(
                "\(shown) is the folder of all accounts.",
                advice: "Name an account's folder, or something below one."
            )
        }
        guard let below = path.dropping(beginning: mountPoint + "/") else {
            throw Failure(
                "\(shown) does not lie in the mount \(mountPoint).",
                advice: "Name a file or folder below it."
            )
        }
        var names = below.parts(between: "/").filter { !$0.isEmpty }.map(String.init)
        let name = names.isEmpty ? "" : names.removeFirst()
        guard let account = accounts.withLock({ $0[name] }) else {
            guard let detached = detached.withLock({ $0[name] }) else {
                throw Failure(
                    "There is no account \"\(TerminalText.line(name))\" in the mount.",
                    advice: "`oort accounts` lists them."
                )
            }
            throw Failure("The account \"\(name)\" is not connected.", advice: detached.obstacle)
        }
        guard !catalog.leavesOut(names, of: account.id) else {
            throw Failure(
                "\(shown) is left out on this machine.",
                advice: "Take it out of leave_out in [accounts.\(account.name)] in the settings, "
                    + "and mount again."
            )
        }
        do throws(CatalogError) {
            guard let root = try catalog.account(account.id)?.root else { throw .noAccount }
            var folder = try catalog.node(root)
            var node: Node? = folder
            for (index, name) in names.enumerated() {
                node = try catalog.lookup(name, in: folder)
                guard let found = node, found.kind == .folder else {
                    // Nothing lies below a file.
                    if index < names.count - 1 { node = nil }
                    break
                }
                folder = found
            }
            return MountedPath(
                account: account,
                names: names,
                folder: folder,
                node: node,
                path: path
            )
        } catch {
            throw CatalogTrouble.failure(error, path: options.folders.catalogFile)
        }
    }

    /// The same of what has to be there.
    ///
    /// - Throws: `Failure` naming the path when nothing lies there.
    func existing(_ path: String) throws(Failure) -> (place: MountedPath, node: Node) {
        let place = try mounted(path)
        guard let node = place.node else {
            throw Failure("\(place.shown) is not there.", advice: "Check the spelling.")
        }
        return (place, node)
    }

    /// How the service is asked for something of the tree.
    ///
    /// - Throws: `Failure` when the service does not have it yet.
    func reference(to node: Node, at place: MountedPath) async throws(Failure) -> ItemReference {
        let known: ItemReference?
        do throws(CatalogError) { known = try await catalog.reference(to: node.inode) } catch {
            throw CatalogTrouble.failure(error, path: options.folders.catalogFile)
        }
        guard let known, node.remoteID != nil else {
            throw Failure(
                "\(place.shown) is not in the cloud yet.",
                advice: "Send it first: oort sync \(Shell.quoted(place.path))"
            )
        }
        return known
    }

    /// What a service's refusal means for a person.
    func failure(
        _ error: ProviderError,
        _ what: String,
        _ account: MountedAccount,
        advice: String? = nil
    ) -> Failure {
        let kind = "\(error.kind)"
        let words = SyncWords.errorWords(kind) ?? kind
        let detail = TerminalText.line(error.detail)
        return Failure(
            "\(what): \(words)" + (detail.isEmpty ? "." : " (\(detail))."),
            advice: advice ?? "`oort status` says how the account \(account.name) is."
        )
    }

    /// The title of an account's service.
    func title(of account: MountedAccount) -> String {
        Services.named(account.service)?.title ?? account.service
    }

    /// The path under the mount point of names from an account's root down.
    func path(_ account: MountedAccount, _ names: [String]) -> String {
        ([mountPoint, account.name] + names).joined(separator: "/")
    }

    /// A name of the service's as it is shown.
    static func shownName(_ name: String, isLink: Bool = false) -> String {
        let kind = isLink ? ItemKind.file : .folder
        return ShownName.shown(Item(id: ItemID(""), kind: kind, fileName: name), isLink: isLink)
    }

    /// The name that the service is to have for a shown one.
    static func serviceName(_ shown: String, isLink: Bool) -> String {
        isLink ? LinkName.file(shown) : shown
    }

    /// The path under the mount point of a place that the service names.
    func path(_ account: MountedAccount, service path: RemotePath) -> String {
        self.path(account, path.parts.map { Self.shownName($0) })
    }
}
