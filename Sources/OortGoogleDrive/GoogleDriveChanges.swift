import Foundation
public import OortModel

/// Our place in Drive's logs: one for the user, one for each shared drive, and what is still to be
/// listed.
///
/// Drive has no feed of the whole account, so this composite is what callers store.
struct DriveCursor: Codable, Equatable {
    /// What is still to be listed before the logs are read.
    enum Listing: Codable, Equatable {
        /// All of the user's items.
        case user(page: String?)
        /// All items of a shared drive.
        case drive(String, page: String?)
        /// The contents of these folders: their own log entries report the folders, but not what came back
        /// together with them.
        case folders([String], page: String?)
    }

    struct DriveLog: Codable, Equatable {
        var drive: String
        var token: String
    }

    var user: String
    var drives: [DriveLog]
    /// The log to be read next: 0 is the user's, then the drives' in order.
    var log = 0
    var listings: [Listing] = []
    /// Whether the listings name everything that there is.
    var isEnumeration = false
    /// Folders seen going to the trash, newest last: restored, their contents must be listed,
    /// because nothing promises an entry of its own to what lies below.
    var trashedFolders: [String] = []

    static let trashedFoldersKept = 256

    init(user: String, drives: [DriveLog]) {
        self.user = user
        self.drives = drives
    }

    init(_ cursor: Cursor) throws(ProviderError) {
        do {
            self = try JSONDecoder().decode(DriveCursor.self, from: Data(cursor.rawValue.utf8))
        } catch {
            throw ProviderError(.cursorLost, detail: "not a cursor of this provider")
        }
    }

    func cursor() throws(ProviderError) -> Cursor {
        Cursor(String(decoding: try GoogleDriveAPI.json(self), as: UTF8.self))
    }
}

extension GoogleDriveProvider {
    public func changes(since cursor: Cursor?) async throws(ProviderError) -> ChangePage {
        guard let cursor else { return try await beginEnumeration() }
        let place = try DriveCursor(cursor)
        return place.listings.isEmpty
            ? try await readLogs(place) : try await continueListing(place, before: [])
    }

    /// The logs' ends first, so that nothing that happens while we list is missed.
    private func beginEnumeration() async throws(ProviderError) -> ChangePage {
        var place = DriveCursor(user: try await api.startPageToken(drive: nil), drives: [])
        let drives = try await api.drives()
        for drive in drives {
            place.drives.append(
                .init(drive: drive.id, token: try await api.startPageToken(drive: drive.id))
            )
        }
        place.listings = [.user(page: nil)] + drives.map { .drive($0.id, page: nil) }
        place.isEnumeration = true
        var changes: [Change] = []
        if !drives.isEmpty {
            changes.append(.changed(SyntheticFolder.sharedDrives.item(in: try await rootID())))
            changes += drives.map { .changed($0.item) }
        }
        return try await continueListing(place, before: changes)
    }

    /// Reads one page of the first listing that is left.
    private func continueListing(
        _ cursor: DriveCursor,
        before earlier: [Change]
    ) async throws(ProviderError) -> ChangePage {
        var place = cursor
        var next: [DriveCursor.Listing] = []
        let page: DriveFileList
        switch place.listings.removeFirst() {
        case .user(let token):
            page = try await api.list("trashed=false", page: token)
            if let token = page.nextPageToken { next = [.user(page: token)] }
        case .drive(let drive, let token):
            page = try await api.list("trashed=false", drive: drive, page: token)
            if let token = page.nextPageToken { next = [.drive(drive, page: token)] }
        case .folders(let folders, let token):
            let parents = folders.map { GoogleDriveAPI.quoted($0) + " in parents" }
            page = try await api.list(
                "(\(parents.joined(separator: " or "))) and trashed=false",
                page: token
            )
            let below = (page.files ?? []).filter { $0.mimeType == DriveType.folder }.map(\.id)
            if let token = page.nextPageToken { next = [.folders(folders, page: token)] }
            next += Self.folderListings(below)
        }
        place.listings = next + place.listings

        let rootID = try await rootID()
        let items = (page.files ?? []).compactMap { $0.item(rootID: rootID) }
        let result = ChangePage(
            changes: earlier + withPlace(items.map { .changed($0) }, rootID: rootID),
            cursor: Cursor(""),
            // The logs have been running meanwhile, so there is always something to read after.
            hasMore: true,
            isEnumeration: place.isEnumeration
        )
        if place.listings.isEmpty { place.isEnumeration = false }
        return try finished(result, at: place, endsEnumeration: cursor.isEnumeration)
    }

    /// The page with its cursor; an enumeration's last page says so by having nothing after it.
    private func finished(
        _ page: ChangePage,
        at place: DriveCursor,
        endsEnumeration: Bool
    ) throws(ProviderError) -> ChangePage {
        var page = page
        page.cursor = try place.cursor()
        if endsEnumeration, place.listings.isEmpty { page.hasMore = false }
        return page
    }

    /// Reads the logs from where we are: as many as give few changes, in one go.
    private func readLogs(_ cursor: DriveCursor) async throws(ProviderError) -> ChangePage {
        var place = cursor
        let rootID = try await rootID()
        var changes: [Change] = []
        while place.log <= place.drives.count {
            let drive = place.log == 0 ? nil : place.drives[place.log - 1]
            let page = try await readLog(&place, drive: drive)
            for entry in page.changes ?? [] {
                changes += try await take(entry, into: &place, rootID: rootID)
            }
            // A drive's departure may have shortened the list of logs under us.
            guard let next = page.nextPageToken ?? page.newStartPageToken else {
                throw ProviderError(.malformedAnswer, detail: "a page of changes without a token")
            }
            if let drive {
                guard let index = place.drives.firstIndex(where: { $0.drive == drive.drive })
                else { continue }
                place.drives[index].token = next
            } else {
                place.user = next
            }
            if page.nextPageToken == nil { place.log += 1 }
            if page.nextPageToken != nil || changes.count >= 1000 { break }
        }
        let isAtEnd = place.log > place.drives.count
        if isAtEnd { place.log = 0 }
        return ChangePage(
            changes: withPlace(changes, rootID: rootID),
            cursor: try place.cursor(),
            hasMore: !isAtEnd || !place.listings.isEmpty,
            isEnumeration: false
        )
    }

    /// A drive that we were shut out of answers 404; the user's log will report that, or has.
    private func readLog(
        _ place: inout DriveCursor,
        drive: DriveCursor.DriveLog?
    ) async throws(ProviderError) -> DriveChangeList {
        do throws(ProviderError) {
            return try await api.changes(token: drive?.token ?? place.user, drive: drive?.drive)
        } catch {
            guard let drive, error.kind == .notFound else { throw error }
            return DriveChangeList(changes: nil, newStartPageToken: drive.token)
        }
    }

    /// One entry of a log in canonical terms.
    private func take(
        _ entry: DriveChange,
        into place: inout DriveCursor,
        rootID: ItemID
    ) async throws(ProviderError) -> [Change] {
        if entry.changeType == "drive" || entry.changeType == "teamDrive" {
            return try await takeDrive(entry, into: &place, rootID: rootID)
        }
        // A removal that carries the file only left this log for another one.
        guard let file = entry.file else {
            return entry.fileId.map { [.removed(ItemID($0))] } ?? []
        }
        // The roots of the account and of drives are no items of the tree.
        if file.id == rootID.rawValue || file.id == file.driveId { return [] }
        let isFolder = file.mimeType == DriveType.folder
        if file.trashed == true {
            if isFolder {
                place.trashedFolders.removeAll { $0 == file.id }
                place.trashedFolders.append(file.id)
                place.trashedFolders = place.trashedFolders.suffix(DriveCursor.trashedFoldersKept)
            }
            return [.removed(ItemID(file.id))]
        }
        if isFolder, let known = place.trashedFolders.firstIndex(of: file.id) {
            place.trashedFolders.remove(at: known)
            place.listings += Self.folderListings([file.id])
        }
        guard let item = file.item(changed: entry.time, rootID: rootID) else {
            return [.removed(ItemID(file.id))]
        }
        return [.changed(item)]
    }

    /// A shared drive that was joined, renamed or left.
    private func takeDrive(
        _ entry: DriveChange,
        into place: inout DriveCursor,
        rootID: ItemID
    ) async throws(ProviderError) -> [Change] {
        guard let id = entry.driveId ?? entry.drive?.id else { return [] }
        guard entry.removed != true, let drive = entry.drive else {
            place.drives.removeAll { $0.drive == id }
            place.listings.removeAll {
                if case .drive(id, _) = $0 { true } else { false }
            }
            return [.removed(ItemID(id))]
        }
        if !place.drives.contains(where: { $0.drive == id }) {
            place.drives.append(.init(drive: id, token: try await api.startPageToken(drive: id)))
            place.listings.append(.drive(id, page: nil))
        }
        return [.changed(SyntheticFolder.sharedDrives.item(in: rootID)), .changed(drive.item)]
    }

    /// The changes, and before them the synthetic folder that some of them lie in.
    private func withPlace(_ changes: [Change], rootID: ItemID) -> [Change] {
        let isShared = changes.contains {
            if case .changed(let item) = $0 {
                item.parentID == SyntheticFolder.sharedWithMe.id
            } else {
                false
            }
        }
        return (isShared ? [.changed(SyntheticFolder.sharedWithMe.item(in: rootID))] : []) + changes
    }

    /// Listings of some 50 folders each, which is what one query bears.
    private static func folderListings(_ folders: [String]) -> [DriveCursor.Listing] {
        stride(from: 0, to: folders.count, by: 50).map {
            .folders(Array(folders[$0..<min($0 + 50, folders.count)]), page: nil)
        }
    }

    /// Drive has no long poll: news can only be asked for.
    public func waitForChanges(
        since cursor: Cursor,
        atMost limit: Duration
    ) async throws(ProviderError) -> FeedNews {
        _ = try DriveCursor(cursor)
        do {
            try await clock.sleep(for: limit)
        } catch {
            throw ProviderError(.cancelled, detail: "cancelled")
        }
        return .changed
    }
}
