import Foundation
import OortModel
import Synchronization

extension GoogleDriveSimulator {
    private static let briefFile = "kind,id,name,mimeType"

    func answer(
        with item: SimulatedItem,
        in tree: SimulatedTree,
        _ request: SimulatorRequest
    ) throws(Failure) -> SimulatorAnswer {
        let brief =
            drive(tree.root(of: item.id)) == nil
            ? Self.briefFile : Self.briefFile + ",driveId,teamDriveId"
        let mask = try mask(request, GoogleDriveSchema.file, default: brief)
        return .json(resource(of: item, in: tree, for: request, mask: mask))
    }

    // MARK: Reading

    func get(_ id: String, _ request: SimulatorRequest) throws(Failure) -> SimulatorAnswer {
        if request.query("alt") == "media" { return try download(id, request) }
        return try account.withTree { tree throws(Failure) in
            try self.answer(
                with: try self.visible(id, in: tree, request),
                in: tree,
                request
            )
        }
    }

    func getV2(_ id: String, _ request: SimulatorRequest) throws(Failure) -> SimulatorAnswer {
        let mask = try mask(request, GoogleDriveSchema.fileV2, default: "*")
        return try account.withTree { tree throws(Failure) in
            let item = try self.visible(id, in: tree, request)
            return .json(
                self.resourceV2(of: item, in: tree, for: request, mask: mask),
                headers: [("ETag", Self.etag(of: item))]
            )
        }
    }

    private func download(
        _ id: String,
        _ request: SimulatorRequest
    ) throws(Failure) -> SimulatorAnswer {
        // rclone downloads from shared drives without supportsAllDrives, and has for years.
        guard let item = account.withTree({ $0.item(id) }) else { throw .notFound(id) }
        guard item.kind == .file else {
            throw Failure(
                403,
                "fileNotDownloadable",
                "Only files with binary content can be downloaded. Use Export with Docs Editors "
                    + "files.",
                location: "alt"
            )
        }
        if item.extra["isAbusive"]?.bool == true, request.query("acknowledgeAbuse") != "true" {
            throw Failure(
                403,
                "cannotDownloadAbusiveFile",
                "This file has been identified as malware or spam and cannot be downloaded."
            )
        }
        return try content(
            item.head?.content ?? Self.emptyContent,
            type: GoogleDriveType.of(item),
            request
        )
    }

    func content(
        _ content: SimulatedContent,
        type: String,
        _ request: SimulatorRequest
    ) throws(Failure) -> SimulatorAnswer {
        let answer = SimulatorAnswer.content(content, for: request, type: type)
        guard answer.status == 416 else { return answer }
        throw Failure(
            416,
            "requestedRangeNotSatisfiable",
            "Request range not satisfiable",
            location: "Range"
        )
    }

    func export(_ id: String, _ request: SimulatorRequest) throws(Failure) -> SimulatorAnswer {
        guard let type = request.query("mimeType") else {
            throw Failure(400, "required", "Required parameter: mimeType", location: "mimeType")
        }
        let item = try account.withTree { tree throws(Failure) in
            guard let item = tree.item(id) else { throw .notFound(id) }
            return item
        }
        let bytes = try exported(item, as: type)
        guard bytes.count <= 10_000_000 else {
            throw Failure(
                403,
                "exportSizeLimitExceeded",
                "This file is too large to be exported."
            )
        }
        return SimulatorAnswer(
            status: 200,
            headers: [("Content-Type", type)],
            body: .chunked(bytes)
        )
    }

    func exportLink(_ request: SimulatorRequest) throws(Failure) -> SimulatorAnswer {
        guard let id = request.query("id"), let type = request.query("type"),
            let item = account.withTree({ $0.item(id) })
        else { throw .notFound("") }
        return SimulatorAnswer(
            status: 200,
            headers: [("Content-Type", type)],
            body: .chunked(try exported(item, as: type))
        )
    }

    private func exported(_ item: SimulatedItem, as type: String) throws(Failure) -> [UInt8] {
        guard case .nativeDocument = item.kind else {
            throw Failure(403, "fileNotExportable", "Export only supports Docs Editors files.")
        }
        guard GoogleDriveType.exports[GoogleDriveType.of(item)]?.contains(type) == true else {
            throw Failure(
                400,
                "badRequest",
                "The requested conversion is not supported.",
                location: "convertTo"
            )
        }
        return SimulatedExport(
            title: item.name,
            text: String(decoding: item.head?.content.bytes ?? [], as: UTF8.self)
        ).bytes(as: GoogleDriveType.exportFormat(type))
    }

    func thumbnail(_ id: String) throws(Failure) -> SimulatorAnswer {
        guard let item = account.withTree({ $0.item(id) }), let head = item.head,
            hasThumbnail(item)
        else { throw .notFound(id) }
        return SimulatorAnswer(
            status: 200,
            headers: [("Content-Type", GoogleDriveType.of(item))],
            body: .content(head.content, 0..<head.content.size)
        )
    }

    // MARK: Writing

    func create(_ request: SimulatorRequest) throws(Failure) -> SimulatorAnswer {
        if request.query("uploadType") != nil {
            throw Failure(
                400,
                "wrongUrlForUpload",
                "Uploads must be sent to the upload URL. Re-send this request to "
                    + "https://www.googleapis.com/upload/drive/v3/files"
            )
        }
        let metadata = try GoogleDriveMetadata(request.bytes)
        return try account.withTree { tree throws(Failure) in
            let item = try self.create(metadata, content: nil, in: &tree, request)
            return try self.answer(with: item, in: tree, request)
        }
    }

    /// Makes an item as create and upload do; `content` is nil where none was sent.
    func create(
        _ metadata: GoogleDriveMetadata,
        content: SimulatedContent?,
        in tree: inout SimulatedTree,
        _ request: SimulatorRequest
    ) throws(Failure) -> SimulatedItem {
        let parent = try parent(of: metadata, in: tree, request)
        try checkName(metadata, in: tree)
        let id = try newID(metadata, tree)
        let type = metadata.mimeType
        let kind: SimulatedItem.Kind
        switch type {
        case GoogleDriveType.folder?: kind = .folder
        case GoogleDriveType.shortcut?:
            guard let target = metadata.shortcutTarget, let found = tree.item(target) else {
                throw .notFound(metadata.shortcutTarget ?? "")
            }
            if case .shortcut = found.kind {
                throw Failure(
                    400,
                    "shortcutTargetInvalid",
                    "Shortcuts cannot target other shortcuts."
                )
            }
            kind = .shortcut(target: target)
        case .some(let type) where type.hasPrefix(GoogleDriveType.prefix):
            guard let document = GoogleDriveType.document(type) else {
                throw .invalid("mimeType")
            }
            if id != nil {
                throw .invalid("id", "Generated IDs are not supported for Docs Editors files.")
            }
            kind = .nativeDocument(document)
        default: kind = .file
        }
        let isFile = kind == .file
        let stored = isFile || content != nil ? content ?? Self.emptyContent : nil
        let item = tree.create(
            metadata.name.flatMap { $0.isEmpty ? nil : $0 } ?? "Untitled",
            in: parent,
            kind: kind,
            content: stored,
            modifiedTime: metadata.modifiedTime,
            id: id
        ) { item in
            if isFile { item.mimeType = type ?? GoogleDriveType.guess(item.name) }
            if let type, case .nativeDocument = kind { item.mimeType = type }
            if let time = metadata.createdTime { item.createdTime = time }
            metadata.apply(to: &item)
            if item.description?.isEmpty == true { item.description = nil }
            if isFile, item.extra["originalFilename"] == nil {
                item.extra["originalFilename"] = .string(item.name)
            }
        }
        return item
    }

    private func parent(
        of metadata: GoogleDriveMetadata,
        in tree: SimulatedTree,
        _ request: SimulatorRequest
    ) throws(Failure) -> String {
        let parents = metadata.parents ?? [tree.rootID]
        guard parents.count <= 1 else {
            throw Failure(
                403,
                "cannotAddParent",
                "A file cannot have more than one parent."
            )
        }
        let folder = try visible(parents.first ?? tree.rootID, in: tree, request)
        guard folder.isFolder else {
            throw Failure(
                403,
                "parentNotAFolder",
                "The specified parent is not a folder.",
                location: "parents"
            )
        }
        guard role(on: folder, in: tree) >= .writer else {
            throw Failure(
                403,
                "insufficientParentPermissions",
                "Insufficient permissions for the specified parent."
            )
        }
        guard (tree.path(of: folder.id)?.count ?? 0) < 100 else {
            throw Failure(
                403,
                "myDriveHierarchyDepthLimitExceeded",
                "Your My Drive folders are nested too deep."
            )
        }
        return folder.id
    }

    private func newID(
        _ metadata: GoogleDriveMetadata,
        _ tree: SimulatedTree
    ) throws(Failure) -> String? {
        guard let id = metadata.id else { return nil }
        if tree.item(id) != nil {
            throw Failure(
                409,
                "fileIdInUse",
                "A file already exists with the provided ID."
            )
        }
        guard state.withLock({ $0.generatedIDs.contains(id) }) else {
            throw .invalid("id", "The provided file ID is not usable.")
        }
        return id
    }

    /// Asked before the tree is changed.
    func checkRoom(for bytes: Int64) throws(Failure) {
        guard bytes == 0 || account.hasRoom(for: bytes) else {
            throw Failure(
                403,
                "storageQuotaExceeded",
                "The user's Drive storage quota has been exceeded."
            )
        }
    }

    func update(_ id: String, _ request: SimulatorRequest) throws(Failure) -> SimulatorAnswer {
        let metadata = try GoogleDriveMetadata(request.bytes, isUpdate: true)
        return try account.withTree { tree throws(Failure) in
            let item = try self.visible(id, in: tree, request)
            try self.checkMayWrite(item, metadata, in: tree)
            try self.place(item, metadata, in: &tree, request)
            return try self.answer(with: tree.item(item.id) ?? item, in: tree, request)
        }
    }

    /// Drive itself takes any name; an organization's rules may not.
    func checkName(
        _ metadata: GoogleDriveMetadata,
        in tree: SimulatedTree
    ) throws(Failure) {
        guard let name = metadata.name, tree.conditions.refusedNames.contains(name) else { return }
        throw .invalid("name")
    }

    func checkMayWrite(
        _ item: SimulatedItem,
        _ metadata: GoogleDriveMetadata,
        in tree: SimulatedTree
    ) throws(Failure) {
        try checkName(metadata, in: tree)
        let needed: Role = metadata.trashed == nil ? .writer : .owner
        guard role(on: item, in: tree) >= needed else { throw .noPermission }
        if item.id == tree.rootID || drive(item.id) != nil {
            guard metadata.name == nil, metadata.trashed == nil else { throw .noPermission }
        }
    }

    /// Name, place, trash and the other fields of an update, in one step.
    func place(
        _ item: SimulatedItem,
        _ metadata: GoogleDriveMetadata,
        in tree: inout SimulatedTree,
        _ request: SimulatorRequest
    ) throws(Failure) {
        let added = request.query("addParents")?.split(separator: ",").map(String.init) ?? []
        let removed = request.query("removeParents")?.split(separator: ",").map(String.init) ?? []
        var parent = item.parentID
        if removed.contains(where: { ($0 == "root" ? tree.rootID : $0) == parent }) {
            parent = tree.rootID
        }
        guard added.count <= 1 else {
            throw Failure(403, "cannotAddParent", "A file cannot have more than one parent.")
        }
        if let id = added.first {
            let folder = try visible(id, in: tree, request)
            guard folder.isFolder else {
                throw Failure(
                    403,
                    "parentNotAFolder",
                    "The specified parent is not a folder.",
                    location: "addParents"
                )
            }
            guard role(on: item, in: tree) == .owner else {
                throw Failure(
                    403,
                    "cannotAddParent",
                    "Increasing the number of parents is not allowed."
                )
            }
            guard role(on: folder, in: tree) >= .writer else {
                throw Failure(
                    403,
                    "insufficientParentPermissions",
                    "Insufficient permissions for the specified parent."
                )
            }
            guard !tree.lies(folder.id, in: item.id) else {
                throw Failure(
                    400,
                    "badRequest",
                    "Bad Request. User message: \"Cannot make a folder a "
                        + "descendant of itself.\""
                )
            }
            let from = tree.root(of: item.id)
            let to = tree.root(of: folder.id)
            if from != to, item.isFolder, drive(to) != nil {
                throw Failure(
                    403,
                    "teamDrivesFolderMoveInNotSupported",
                    "Moving folders into shared drives is not supported."
                )
            }
            if from != to {
                let log = drive(from) ?? "user"
                tree.update(item.id) { $0.extra["leftLog"] = .string(log) }
            }
            parent = folder.id
        }
        let name = metadata.name.map { $0.isEmpty ? "Untitled" : $0 } ?? item.name
        if parent != item.parentID || !name.utf8.elementsEqual(item.name.utf8) {
            tree.move(item.id, to: parent, name: name)
        }
        if metadata.changesFields {
            tree.update(item.id) { item in
                if let time = metadata.modifiedTime { item.modifiedTime = time }
                if let type = metadata.mimeType, item.kind == .file { item.mimeType = type }
                metadata.apply(to: &item)
            }
        }
        if let trashed = metadata.trashed {
            if trashed { tree.trash(item.id) } else { tree.restore(item.id) }
        }
    }

    func copy(_ id: String, _ request: SimulatorRequest) throws(Failure) -> SimulatorAnswer {
        let metadata = try GoogleDriveMetadata(request.bytes)
        try checkRoom(for: account.withTree { $0.item(id)?.size ?? 0 })
        return try account.withTree { tree throws(Failure) in
            let source = try self.visible(id, in: tree, request)
            var copied = metadata
            copied.name = metadata.name ?? source.name
            copied.parents = metadata.parents ?? source.parentID.map { [$0] }
            let isNative: Bool
            switch source.kind {
            case .folder, .shortcut:
                throw Failure(403, "cannotCopyFile", "This file cannot be copied by the user.")
            case .file:
                isNative = false
                copied.mimeType = metadata.mimeType ?? GoogleDriveType.of(source)
            case .nativeDocument:
                isNative = true
                copied.mimeType = GoogleDriveType.of(source)
                // Known behaviour: the copy of a document gets the present time.
                copied.modifiedTime = nil
            }
            if !isNative, copied.modifiedTime == nil { copied.modifiedTime = source.modifiedTime }
            let content = source.head?.content
            let item = try self.create(copied, content: content, in: &tree, request)
            if metadata.description == nil, let text = source.description {
                tree.update(item.id) { $0.description = text }
            }
            return try self.answer(with: tree.item(item.id) ?? item, in: tree, request)
        }
    }

    func delete(_ id: String, _ request: SimulatorRequest) throws(Failure) -> SimulatorAnswer {
        try account.withTree { tree throws(Failure) in
            let item = try self.visible(id, in: tree, request)
            guard item.parentID != nil, self.role(on: item, in: tree) == .owner else {
                throw .noPermission
            }
            tree.remove(item.id)
        }
        return SimulatorAnswer(status: 204)
    }

    func emptyTrash() -> SimulatorAnswer {
        account.withTree { tree in
            for item in Array(tree.allItems) where item.trashedTime != nil { tree.remove(item.id) }
        }
        return SimulatorAnswer(status: 204)
    }
}
