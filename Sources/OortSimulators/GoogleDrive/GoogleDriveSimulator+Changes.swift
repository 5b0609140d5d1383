import OortModel
import Synchronization

extension GoogleDriveSimulator {
    func about(_ request: SimulatorRequest) throws(Failure) -> SimulatorAnswer {
        guard request.query("fields") != nil else {
            throw Failure(
                400,
                "required",
                "The 'fields' parameter is required for this method.",
                location: "fields"
            )
        }
        let mask = try mask(request, GoogleDriveSchema.about, default: "*")
        let (used, inTrash) = account.withTree { tree in
            (
                tree.usedBytes,
                tree.allItems.reduce(Int64(0)) { $0 + (tree.isTrashed($1.id) ? $1.size : 0) }
            )
        }
        var quota: [String: JSON] = [
            "usage": .string(String(used)), "usageInDrive": .string(String(used)),
            "usageInDriveTrash": .string(String(inTrash)),
        ]
        if let total = account.totalBytes { quota["limit"] = .string(String(total)) }
        let lists = { (map: [String: [String]]) in
            JSON.object(map.mapValues { .array($0.map { .string($0) }) })
        }
        return .json(
            mask.applied(to: [
                "kind": "drive#about", "user": person(isMe: true), "storageQuota": .object(quota),
                "maxUploadSize": "5242880000000", "appInstalled": true, "canCreateDrives": true,
                "exportFormats": lists(GoogleDriveType.exports),
                "importFormats": lists(GoogleDriveType.imports),
            ])
        )
    }

    func generateIDs(_ request: SimulatorRequest) throws(Failure) -> SimulatorAnswer {
        let count = request.query("count").map { Int($0) } ?? 10
        guard let count, (1...1000).contains(count) else { throw .invalid("count") }
        let ids = account.withTree { tree in
            (0..<count).map { _ in tree.rules.makeID(.file, &tree.random) }
        }
        state.withLock { $0.generatedIDs.formUnion(ids) }
        return .json([
            "kind": "drive#generatedIds", "space": "drive", "ids": .array(ids.map { .string($0) }),
        ])
    }

    // MARK: Shared drives

    func drives(_ request: SimulatorRequest) throws(Failure) -> SimulatorAnswer {
        let mask = try mask(
            request,
            GoogleDriveSchema.driveList,
            default: "kind,nextPageToken,drives(kind,id,name),teamDrives(kind,id,name)"
        )
        let ids = state.withLock { $0.drives }.sorted()
        let all = account.withTree { tree in
            ids.compactMap { tree.item($0) }.map { self.resource(ofDrive: $0) }
        }
        return .json(
            mask.applied(to: [
                "kind": "drive#driveList", "drives": .array(all), "teamDrives": .array(all),
            ])
        )
    }

    func drive(_ id: String, _ request: SimulatorRequest) throws(Failure) -> SimulatorAnswer {
        let mask = try mask(request, GoogleDriveSchema.drive, default: "kind,id,name")
        guard drive(id) != nil, let item = account.withTree({ $0.item(id) }) else {
            throw Failure(
                404,
                "notFound",
                "Shared drive not found: \(id)",
                location: "driveId"
            )
        }
        return .json(mask.applied(to: resource(ofDrive: item)))
    }

    private func resource(ofDrive item: SimulatedItem) -> JSON {
        [
            "kind": "drive#drive", "id": .string(item.id), "name": .string(item.name),
            "createdTime": Self.time(item.createdTime), "hidden": false,
            "capabilities": [
                "canAddChildren": true, "canEdit": true, "canListChildren": true,
                "canDownload": true, "canRenameDrive": true,
            ],
        ]
    }

    // MARK: The change log

    func startPageToken(_ request: SimulatorRequest) throws(Failure) -> SimulatorAnswer {
        if let id = request.query("driveId"), drive(id) == nil {
            throw Failure(404, "notFound", "Shared drive not found: \(id)", location: "driveId")
        }
        let sequence = account.withTree { $0.sequence }
        return .json([
            "kind": "drive#startPageToken", "startPageToken": .string(String(sequence + 1)),
        ])
    }

    func changes(_ request: SimulatorRequest) throws(Failure) -> SimulatorAnswer {
        let mask = try mask(
            request,
            GoogleDriveSchema.changeList,
            default: "kind,nextPageToken,newStartPageToken,changes(kind,changeType,removed,"
                + "time,fileId,file(kind,id,name,mimeType))"
        )
        let driveID = request.query("driveId")
        if let driveID, drive(driveID) == nil {
            throw Failure(
                404,
                "notFound",
                "Shared drive not found: \(driveID)",
                location: "driveId"
            )
        }
        let size = try pageSize(request)
        return try account.withTree { tree throws(Failure) in
            guard let token = request.query("pageToken").flatMap({ Int($0) }),
                (1...tree.sequence + 1).contains(token)
            else { throw .invalid("pageToken") }
            let log = tree.changes(after: token - 1)
            let page = log.prefix(size)
            let entries = page.compactMap {
                self.entry($0.id, log: driveID, in: tree, request, mask.below("changes"))
            }
            var answer: [String: JSON] = ["kind": "drive#changeList", "changes": .array(entries)]
            if page.count < log.count, let last = page.last {
                answer["nextPageToken"] = .string(String(last.sequence + 1))
            } else {
                answer["newStartPageToken"] = .string(String(tree.sequence + 1))
            }
            return .json(mask.applied(to: .object(answer)))
        }
    }

    /// What a log says of an item: its present state, or that it is no longer in this log.
    private func entry(
        _ id: String,
        log: String?,
        in tree: SimulatedTree,
        _ request: SimulatorRequest,
        _ mask: GoogleDriveFieldMask
    ) -> JSON? {
        guard let item = tree.item(id) else {
            if state.withLock({ $0.formerDrives.contains(id) }) {
                return log == nil ? driveEntry(id, nil, tree) : nil
            }
            return [
                "kind": "drive#change", "type": "file", "changeType": "file", "fileId": .string(id),
                "removed": true, "time": Self.time(tree.now()),
            ]
        }
        if drive(id) != nil { return log == nil ? driveEntry(id, item, tree) : nil }
        let root = tree.root(of: id)
        let home = drive(root)
        let file = resource(of: item, in: tree, for: request, mask: mask.below("file"))
        var entry: [String: JSON] = [
            "kind": "drive#change", "type": "file", "changeType": "file", "fileId": .string(id),
            "removed": false, "time": Self.time(item.serverModifiedTime), "file": file,
        ]
        if home == log { return .object(entry) }
        // It left this log for another one.
        guard item.extra["leftLog"]?.text == log ?? "user" else { return nil }
        entry["removed"] = true
        if request.query("includeCorpusRemovals") != "true" { entry["file"] = nil }
        return .object(entry)
    }

    private func driveEntry(_ id: String, _ item: SimulatedItem?, _ tree: SimulatedTree) -> JSON {
        var entry: [String: JSON] = [
            "kind": "drive#change", "type": "teamDrive", "changeType": "drive",
            "driveId": .string(id), "teamDriveId": .string(id), "removed": .bool(item == nil),
            "time": Self.time(item?.serverModifiedTime ?? tree.now()),
        ]
        if let item { entry["drive"] = resource(ofDrive: item) }
        return .object(entry)
    }
}
