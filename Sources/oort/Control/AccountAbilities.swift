import OortModel

/// What an account's service can do, as its documents say or a sign-in found out.
struct AccountAbilities: Codable, Hashable, Sendable {
    /// Whether it refuses a save over a version that is not the one that was meant.
    var refusesStaleSaves: Bool
    /// Whether it refuses to make something under a name that is taken.
    var refusesTakenNames: Bool
    /// Whether it copies a file without its bytes travelling.
    var copiesFiles: Bool
    /// Whether it takes a file's modified time later than its content.
    var setsTimes: Bool
    /// Whether what is deleted can be had back.
    var keepsDeleted: Bool
    /// Whether earlier versions can be had back.
    var keepsVersions: Bool
    /// Whether it makes links for others.
    var makesLinks: Bool
    /// Whether the service announces its news; if not, it is asked for them now and then.
    var tellsNews: Bool
    /// The hash of contents that the service reports, by which transfers are checked; nil where it reports
    /// none, or an older mount does not say.
    var hash: String?
}

extension AccountAbilities {
    /// What a provider can do.
    init(_ provider: any Provider) {
        self.init(
            provider.traits,
            trash: provider.trash,
            versions: provider.versions,
            links: provider.links
        )
    }

    /// What a service of places can do.
    init(_ client: any PlaceClient) {
        self.init(
            client.traits.provider,
            trash: client.trash,
            versions: client.versions,
            links: client.links
        )
    }

    private init(
        _ traits: ProviderTraits,
        trash: (any Trash)?,
        versions: (any VersionHistory)?,
        links: (any LinkSharing)?
    ) {
        self.init(
            refusesStaleSaves: traits.replaceIsAtomic,
            refusesTakenNames: traits.refusesTakenNames,
            copiesFiles: traits.copiesFiles,
            setsTimes: traits.setsModifiedTime,
            keepsDeleted: trash != nil,
            keepsVersions: versions != nil,
            makesLinks: links != nil,
            tellsNews: traits.feed == .longPoll,
            hash: traits.tellsHashes ? Self.word(traits.hashAlgorithm) : nil
        )
    }

    private static func word(_ algorithm: HashAlgorithm) -> String {
        switch algorithm {
        case .dropboxContentHash: "Dropbox's content hash"
        case .md5: "MD5"
        case .sha1: "SHA-1"
        case .sha256: "SHA-256"
        case .quickXor: "QuickXorHash"
        }
    }

    /// What may cost a person a save; nil where nothing may.
    var caution: String? {
        refusesStaleSaves
            ? nil
            : "this server cannot refuse a stale replace: what somebody else saves in the moment "
                + "before an upload ends is overwritten"
    }

    /// All of it, a line each.
    var lines: [String] {
        let all: [(Bool, String)] = [
            (refusesStaleSaves, "refuses a stale replace"),
            (refusesTakenNames, "refuses a name that is taken"),
            (copiesFiles, "copies files itself"),
            (setsTimes, "takes a modified time without its content"),
            (keepsDeleted, "gives back what was deleted"),
            (keepsVersions, "gives back earlier versions"),
            (makesLinks, "makes links for others"),
            (tellsNews, "announces changes by itself"),
            (hash != nil, "tells a hash of contents" + (hash.map { " (\($0))" } ?? "")),
        ]
        return all.map { "\($0 ? "yes" : "no")\t\($1)" }
    }
}
