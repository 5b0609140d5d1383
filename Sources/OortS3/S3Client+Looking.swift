import Foundation
public import OortModel
import Synchronization

extension S3Client {
    public func entry(at path: RemotePath) async throws(ProviderError) -> PlaceEntry {
        guard let name = path.name else {
            _ = try await page(of: space.prefix, delimiter: nil, after: nil, atMost: 1)
            return folder("")
        }
        if !S3Names.part(of: name).isBesideFile,
            let head = try await file(try space.key(of: path))
        {
            return entry(name, head)
        }
        let prefix = try space.prefix(of: path)
        if try await isAnything(below: prefix) { return folder(name) }
        throw ProviderError(.notFound, detail: "no object, and none below it")
    }

    public func listing(of folder: RemotePath) async throws(ProviderError) -> PlaceListing {
        cleanUp()
        let prefix = try space.prefix(of: folder)
        var files: [(part: String, object: S3Object)] = []
        var folders: [String] = []
        var isThere = folder.parts.isEmpty
        var token: String?
        var emptyPages = 0
        var walk = PageWalk()
        repeat {
            if let token { try walk.goOn(to: token) }
            let page = try await page(of: prefix, delimiter: "/", after: token)
            for object in page.objects {
                learn(object)
                // A store that writes keys in its own way may answer with others.
                guard let part = object.key.dropping(beginning: prefix) else { continue }
                isThere = true
                if part.isEmpty, object.size == 0 {
                    memory.withLock { $0.remember(marked: prefix) }
                } else if !Self.isKeeper(part, object), !part.has("/") {
                    files.append((String(part), object))
                }
            }
            for found in page.prefixes {
                guard let part = found.dropping(beginning: prefix)?.dropping(ending: "/") else {
                    continue
                }
                isThere = true
                folders.append(String(part))
            }
            let isEmpty = page.objects.isEmpty && page.prefixes.isEmpty
            emptyPages = isEmpty ? emptyPages + 1 : 0
            guard page.next == nil || emptyPages < Self.mostEmptyPages else {
                throw ProviderError(.malformedAnswer, detail: "empty pages without end")
            }
            token = page.next
        } while token != nil
        if !isThere {
            let isFile = try await file(try space.key(of: folder)) != nil
            throw ProviderError(
                isFile ? .notAFolder : .notFound,
                detail: "nothing begins with the folder's name"
            )
        }
        var names: Set<ExactText> = []
        var entries: [PlaceEntry] = []
        for (part, object) in files where names.insert(ExactText(part)).inserted {
            entries.append(entry(S3Names.name(of: part), object))
        }
        var folderNames: Set<ExactText> = []
        for part in folders where folderNames.insert(ExactText(part)).inserted {
            let isBesideFile = names.contains(ExactText(part))
            entries.append(
                self.folder(
                    isBesideFile ? S3Names.nameBesideFile(of: part) : S3Names.name(of: part)
                )
            )
        }
        return PlaceListing(entries: entries)
    }

    /// Whether an object only keeps its folder.
    private static func isKeeper(_ part: Substring, _ object: S3Object) -> Bool {
        object.size == 0 && part.isSameText(as: S3Names.keeper)
    }

    // MARK: Everything

    /// Where a flat list goes on.
    private struct Place: Codable {
        var token: String
        /// Files whose keys the next ones may begin with: folders of their names have other names.
        var files: [String]
    }

    public func snapshot(page token: PageToken?) async throws(ProviderError) -> SnapshotPage {
        cleanUp()
        var place: Place?
        if let token {
            place = try? JSONDecoder().decode(Place.self, from: Data(token.rawValue.utf8))
            guard place != nil else {
                throw ProviderError(.badRequest, detail: "a page of another form")
            }
        }
        let page = try await page(of: space.prefix, delimiter: nil, after: place?.token)
        var files = place?.files ?? []
        var entries: [(folder: RemotePath, entry: PlaceEntry)] = []
        for object in page.objects {
            learn(object)
            guard let rest = object.key.dropping(beginning: space.prefix) else { continue }
            files.removeAll { !rest.begins(with: $0) }
            let parts = rest.parts(between: "/")
            var folder: [String] = []
            var beginning = ""
            for part in parts.dropLast() {
                beginning += part
                let isBesideFile = files.contains { $0.isSameText(as: beginning) }
                folder.append(
                    isBesideFile ? S3Names.nameBesideFile(of: part) : S3Names.name(of: part)
                )
                beginning += "/"
            }
            guard let last = parts.last else { continue }
            if object.size == 0, last.isEmpty || Self.isKeeper(last, object) {
                // A folder's marker; that of the account itself is none of its entries.
                guard let name = folder.popLast() else { continue }
                memory.withLock { $0.remember(marked: space.prefix + beginning) }
                entries.append((RemotePath(folder), self.folder(name)))
            } else {
                entries.append((RemotePath(folder), entry(S3Names.name(of: last), object)))
                files.append(String(rest))
            }
        }
        guard let next = page.next else { return SnapshotPage(entries: entries, next: nil) }
        guard next != place?.token || !page.objects.isEmpty else {
            throw ProviderError(.malformedAnswer, detail: "the bucket's list goes in a circle")
        }
        let encoder = JSONEncoder()
        // Texts and nothing else: there is nothing that could fail to encode.
        let text =
            (try? encoder.encode(Place(token: next, files: files)))
            .map { String(decoding: $0, as: UTF8.self) } ?? ""
        return SnapshotPage(entries: entries, next: PageToken(text))
    }
}

extension S3Client.Memory {
    static let mostMarked = 100_000
    /// How long a marker is taken to be there: others may delete it with its folder, and use the name anew.
    private static let markLength = Duration.seconds(60)

    mutating func remember(marked prefix: String) {
        if marked.count >= Self.mostMarked { marked = [:] }
        marked[ExactText(prefix)] = .now
    }

    func isMarked(_ prefix: String) -> Bool {
        marked[ExactText(prefix)].map { .now - $0 < Self.markLength } ?? false
    }
}
