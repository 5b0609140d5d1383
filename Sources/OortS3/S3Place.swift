import OortModel

/// Where an account of S3 is: kept with the account.
public struct S3Place: Codable, Hashable, Sendable {
    /// The bucket.
    public var bucket: String
    /// What all keys of the account begin with: empty, or ending in a slash.
    public var prefix: String
    /// Scheme, host, port and perhaps a path, without a slash at the end; nil for AWS, where the
    /// region makes it.
    public var endpoint: String?
    /// The region that signatures are for.
    public var region: String
    /// Whether the bucket is in the path; else it is in the host's name.
    public var isPathStyle: Bool

    /// A place with all of its parts; a slash is added to a prefix that has none at its end.
    public init(
        bucket: String,
        prefix: String = "",
        endpoint: String? = nil,
        region: String,
        isPathStyle: Bool
    ) {
        self.bucket = bucket
        self.prefix = S3KeySpace(prefix: prefix).prefix
        self.endpoint = endpoint
        self.region = region
        self.isPathStyle = isPathStyle
    }

    /// The stable key of the account: not of the keys, which are exchanged now and then.
    public var accountID: String { "\(endpoint ?? "https://s3.amazonaws.com")/\(bucket)/\(prefix)" }

    /// For people: the bucket, and where it is.
    public var title: String {
        let host = endpoint.map { Self.parts(of: $0).host } ?? "s3.\(region).amazonaws.com"
        let folder = prefix.isEmpty ? "" : "/" + prefix.dropLast()
        return "\(bucket)\(folder) at \(host)"
    }

    /// Whether content goes out unencrypted, and so must be signed itself.
    var isPlain: Bool { endpoint?.begins(with: "http://") == true }

    /// The address of a key or, without one, of the bucket; `query` is encoded here.
    func url(
        of key: String?,
        _ query: [(name: String, value: String)] = [],
        region: String
    ) -> String {
        let encoded = key.map { S3Text.percentEncoded($0, keepsSlash: true) } ?? ""
        let amazon =
            "https://s3.\(region).amazonaws.com" + (region.begins(with: "cn-") ? ".cn" : "")
        let base = endpoint ?? amazon
        var url: String
        if isPathStyle {
            let path = S3Text.percentEncoded(bucket, keepsSlash: false)
            url = key == nil ? "\(base)/\(path)" : "\(base)/\(path)/\(encoded)"
        } else {
            let (scheme, host, path) = Self.parts(of: base)
            url = "\(scheme)://\(bucket).\(host)\(path)/\(encoded)"
        }
        for (index, (name, value)) in query.enumerated() {
            url += index == 0 ? "?" : "&"
            url += S3Text.percentEncoded(name, keepsSlash: false) + "="
            url += S3Text.percentEncoded(value, keepsSlash: false)
        }
        return url
    }

    /// An endpoint's parts; the host has its port.
    static func parts(of endpoint: String) -> (scheme: String, host: String, path: String) {
        guard let (scheme, rest) = endpoint.cut(atFirst: ":"),
            let address = rest.dropping(beginning: "//")
        else { return ("https", endpoint, "") }
        guard let slash = address.unicodeScalars.firstIndex(of: "/") else {
            return (String(scheme), String(address), "")
        }
        return (String(scheme), String(address[..<slash]), String(address[slash...]))
    }
}

/// What a store can do, found out by trying: kept with the account.
///
/// None of it is believed from documentation, since many stores answer 200 to a condition that they
/// do not know.
public struct S3Abilities: Codable, Hashable, Sendable {
    /// A PUT with `If-None-Match: *` is refused when the key is there.
    public var refusesTakenKeys = true
    /// A PUT with `If-Match` is refused when another version is there.
    public var refusesStaleUploads = true
    /// A DELETE with `If-Match` is refused when another version is there.
    public var refusesStaleDeletions = true
    /// A copy with `If-None-Match: *` is refused when its target is there.
    public var refusesTakenCopies = true
    /// A copy with `x-amz-copy-source-if-match` is refused when its source is another version.
    public var refusesStaleCopies = true
    /// Objects are copied by the store.
    public var copies = true
    /// A copy onto itself sets the metadata anew.
    public var rewritesMetadata = true
    /// Up to 1,000 keys are deleted by one request.
    public var deletesMany = true
    /// The ETag of what was sent in one piece is its MD5.
    public var tagsAreMD5 = true
    /// Listings have the second form (`list-type=2`).
    public var listsByTokens = true
    /// An object whose key ends in a slash appears in listings.
    public var listsMarkers = true
    /// A backslash in a key stays one; some stores make a slash of it.
    public var keepsBackslashes = true
    /// Deleted objects stay as earlier versions.
    public var keepsVersions = false
    /// The keys may write.
    public var writes = true

    /// What AWS can do in a bucket without versions.
    public init() {}

    /// Abilities as an account keeps them; one that it does not know of, since it was tried by an older
    /// program, is taken for missing.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        func value(_ key: CodingKeys, _ known: KeyPath<S3Abilities, Bool>) throws -> Bool {
            try values.decodeIfPresent(Bool.self, forKey: key) ?? S3Abilities.least[keyPath: known]
        }
        refusesTakenKeys = try value(.refusesTakenKeys, \.refusesTakenKeys)
        refusesStaleUploads = try value(.refusesStaleUploads, \.refusesStaleUploads)
        refusesStaleDeletions = try value(.refusesStaleDeletions, \.refusesStaleDeletions)
        refusesTakenCopies = try value(.refusesTakenCopies, \.refusesTakenCopies)
        refusesStaleCopies = try value(.refusesStaleCopies, \.refusesStaleCopies)
        copies = try value(.copies, \.copies)
        rewritesMetadata = try value(.rewritesMetadata, \.rewritesMetadata)
        deletesMany = try value(.deletesMany, \.deletesMany)
        tagsAreMD5 = try value(.tagsAreMD5, \.tagsAreMD5)
        listsByTokens = try value(.listsByTokens, \.listsByTokens)
        listsMarkers = try value(.listsMarkers, \.listsMarkers)
        keepsBackslashes = try value(.keepsBackslashes, \.keepsBackslashes)
        keepsVersions = try value(.keepsVersions, \.keepsVersions)
        writes = try value(.writes, \.writes)
    }

    /// What every store can do that takes uploads.
    public static let least: S3Abilities = {
        var least = S3Abilities()
        least.refusesTakenKeys = false
        least.refusesStaleUploads = false
        least.refusesStaleDeletions = false
        least.refusesTakenCopies = false
        least.refusesStaleCopies = false
        least.copies = false
        least.rewritesMetadata = false
        least.deletesMany = false
        least.tagsAreMD5 = false
        least.listsMarkers = false
        return least
    }()
}

/// All that is known of an account but its keys.
public struct S3Account: Codable, Hashable, Sendable {
    /// Where it is.
    public var place: S3Place
    /// What the store can do.
    public var abilities: S3Abilities

    /// A place and what can be done there.
    public init(place: S3Place, abilities: S3Abilities) {
        self.place = place
        self.abilities = abilities
    }
}
