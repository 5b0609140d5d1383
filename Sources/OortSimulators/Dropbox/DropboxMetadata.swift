import OortModel

extension SimulatedTree {
    /// `path_display` and `path_lower` of names from the root.
    static func paths(_ parts: [String], key: String) -> [String: JSON] {
        ["path_display": .string(parts.map { "/" + $0 }.joined()), "path_lower": .string(key)]
    }

    /// An item as FileMetadata or FolderMetadata; `.tag` only where the type is polymorphic.
    func metadata(
        _ item: SimulatedItem,
        tagged: Bool,
        revision: SimulatedRevision? = nil,
        at former: [String]? = nil
    ) -> JSON {
        let parts = former ?? path(of: item.id) ?? [item.name]
        var fields = Self.paths(parts, key: key(of: parts))
        fields["name"] = .string(parts.last ?? item.name)
        fields["id"] = .string(item.id)
        if conditions.sharedFolders.contains(item.id) {
            fields["sharing_info"] = [
                "read_only": .bool(isReadOnly(item.id)), "shared_folder_id": "84528192421",
                "traverse_only": false, "no_access": false,
            ]
        } else if isReadOnly(item.id) {
            fields["sharing_info"] = ["read_only": true]
        } else if item.isStrangers {
            fields["sharing_info"] = [
                "read_only": false, "parent_shared_folder_id": "84528192421",
                "modified_by": "dbid:AAH4f99T0taONIb-OurWxbNQ6ywGRopQngc",
            ]
        }
        if item.isFolder {
            if tagged { fields[".tag"] = "folder" }
            return .object(fields)
        }
        if tagged { fields[".tag"] = "file" }
        guard let head = revision ?? item.head else { return .object(fields) }
        fields["client_modified"] = .string(head.modifiedTime.rfc3339(.seconds))
        fields["server_modified"] = .string(head.serverModifiedTime.rfc3339(.seconds))
        fields["rev"] = .string(head.id)
        fields["size"] = .integer(head.content.size)
        if case .nativeDocument(let type) = item.kind {
            fields["is_downloadable"] = false
            let formats = DropboxExports.formats(of: type)
            fields["export_info"] = [
                "export_as": .string(formats[0]),
                "export_options": .array(formats.map { .string($0) }),
            ]
        } else {
            fields["is_downloadable"] = true
            fields["content_hash"] = .string(head.content.dropboxHash)
        }
        return .object(fields)
    }

    /// DeletedMetadata for names from the root.
    func deletedMetadata(_ parts: [String]) -> JSON {
        var fields = Self.paths(parts, key: key(of: parts))
        fields[".tag"] = "deleted"
        fields["name"] = .string(parts.last ?? "")
        return .object(fields)
    }
}

/// What native documents can be exported as.
enum DropboxExports {
    static func formats(of type: SimulatedItem.NativeDocument) -> [String] {
        switch type {
        case .document: ["docx", "pdf"]
        case .spreadsheet: ["xlsx", "pdf"]
        case .presentation: ["pptx", "pdf"]
        case .drawing: ["png"]
        case .notebook: ["markdown", "html", "plain_text"]
        }
    }

    /// The extension of a document of a type in a Dropbox folder.
    static func fileExtension(of type: SimulatedItem.NativeDocument) -> String? {
        switch type {
        case .document: "gdoc"
        case .spreadsheet: "gsheet"
        case .presentation: "gslides"
        case .notebook: "paper"
        case .drawing: nil
        }
    }
}
