import Crypto
import Foundation
public import Logging
public import OortModel
public import OortTransport
import Synchronization

/// The weather of places as folders of documents.
///
/// The account's tree is its own list of places; a document is made when it is opened, from the service's
/// last answer, which is asked for again only when that is no longer fresh. What a document says then
/// changes by itself: the feed reports that once an hour and, when the answer is old, for documents that
/// were opened.
public final class WeatherProvider: Provider {
    public let traits: ProviderTraits
    private let account: WeatherAccount
    private let requests: WeatherRequests
    private let units: WeatherUnits
    private let places: WeatherPlaces
    private let logger: Logger
    private let now: @Sendable () -> Int64

    private struct State {
        /// When the documents of a place read otherwise than they did, of places that were opened.
        var due: [Int: Int64] = [:]
        /// Requests under way, by place.
        var running: [Int: Task<Result<WeatherAnswer, ProviderError>, Never>] = [:]
        /// When a place's service could not be asked the last time, and why.
        var failures: [Int: (time: Int64, error: ProviderError)] = [:]
        /// The callers that wait for news.
        var sleepers: [UUID: Task<Void, Never>] = [:]
        /// Whether it was looked at what an earlier process left.
        var hasBegun = false
    }
    private let state = Mutex(State())

    static let rootID = ItemID("weather")
    /// How long a service is left alone that could not be asked, in seconds.
    private static let pause: Int64 = 60

    /// An account whose places lie in a file.
    ///
    /// - Parameters:
    ///   - account: the account, with the source of the weather.
    ///   - client: the way to the services.
    ///   - endpoints: where the services are.
    ///   - userAgent: the program with its version, which MET Norway insists on.
    ///   - units: the units in which it is shown.
    ///   - file: where the places lie, this provider's alone.
    ///   - logger: logs what could not be read.
    ///   - now: the time, in seconds since 1970.
    /// - Throws: `.localContent` when the file is there and cannot be read.
    public init(
        _ account: WeatherAccount,
        client: any HTTPClient,
        endpoints: WeatherEndpoints = .live,
        userAgent: String,
        units: WeatherUnits = WeatherUnits(),
        file: String,
        logger: Logger,
        now: @escaping @Sendable () -> Int64 = { Timestamp.now.seconds }
    ) throws(ProviderError) {
        self.account = account
        self.units = units
        self.logger = logger
        self.now = now
        requests = WeatherRequests(client: client, endpoints: endpoints, userAgent: userAgent)
        places = try WeatherPlaces(path: file)
        var traits = ProviderTraits(
            names: NameRules(comparison: .composedCaseInsensitive, allowsDuplicates: false) {
                name,
                kind,
                depth in
                guard kind == .folder, depth == 0 else {
                    return .refused(reason: "only places can be added here, as folders")
                }
                return name.utf8.count > 200 ? .tooLong : nil
            },
            hashAlgorithm: .sha256,
            largestSimpleUpload: 0,
            largestFile: 0,
            uploadPartMultiple: 1,
            uploadPartSize: 1
        )
        traits.tellsHashes = false
        traits.makesFoldersItself = true
        traits.fillsFolders = true
        self.traits = traits
    }

    // MARK: Account

    /// Whose account it is: there is no sign-in.
    public static func identity(_ account: WeatherAccount) -> AccountIdentity {
        AccountIdentity(
            id: "weather",
            displayName: "the weather by \(account.source.title)",
            email: nil,
            rootID: rootID
        )
    }

    public func identity() async throws(ProviderError) -> AccountIdentity {
        Self.identity(account)
    }

    public func quota() async throws(ProviderError) -> Quota { throw Self.unsupported }
    public func signOut() async throws(ProviderError) { throw Self.unsupported }
    public func makeHasher() -> any ContentHasher { NoHasher() }

    // MARK: Change feed

    public func changes(since cursor: Cursor?) async throws(ProviderError) -> ChangePage {
        try noteDue()
        let kept = places.kept
        var after = 0
        if let cursor {
            guard let (generation, number) = cursor.rawValue.cut(atLast: "."),
                String(generation).isSameText(as: kept.generation), let known = Int(number),
                known <= kept.change
            else { throw ProviderError(.cursorLost, detail: "the cursor is of other places") }
            after = known
        }
        var changes: [Change] = []
        for place in kept.places.values.sorted(by: { $0.number < $1.number })
        where cursor == nil || place.change > after {
            changes += ([folder(place)] + documents(place)).map { .changed($0) }
        }
        if cursor != nil {
            for (number, change) in kept.gone where change > after {
                changes += WeatherDocument.allCases.map { .removed($0.id(in: number)) }
                changes.append(.removed(Self.id(of: number)))
            }
        }
        return ChangePage(
            changes: changes,
            cursor: Cursor("\(kept.generation).\(kept.change)"),
            hasMore: false,
            isEnumeration: cursor == nil
        )
    }

    public func waitForChanges(
        since cursor: Cursor,
        atMost limit: Duration
    ) async throws(ProviderError) -> FeedNews {
        try noteDue()
        let key = UUID()
        let sleeper = state.withLock { state -> Task<Void, Never>? in
            let kept = places.kept
            guard Cursor("\(kept.generation).\(kept.change)") == cursor else { return nil }
            let next = state.due.values.min().map { Duration.seconds(max(0, $0 - now())) }
            let wait = min(limit, next ?? limit)
            let task = Task { () -> Void in try? await Task.sleep(for: wait) }
            state.sleepers[key] = task
            return task
        }
        guard let sleeper else { return .changed }
        await withTaskCancellationHandler {
            await sleeper.value
        } onCancel: {
            sleeper.cancel()
        }
        state.withLock { $0.sleepers[key] = nil }
        guard !Task.isCancelled else {
            throw ProviderError(.cancelled, detail: "waiting for news was cancelled")
        }
        try noteDue()
        let kept = places.kept
        return Cursor("\(kept.generation).\(kept.change)") == cursor
            ? .quiet(backoff: nil) : .changed
    }

    /// Has the documents be made anew that read otherwise by now.
    private func noteDue() throws(ProviderError) {
        let now = now()
        let (due, isFirst) = state.withLock { state in
            let due = state.due.filter { $0.value <= now }.map(\.key)
            for number in due { state.due[number] = nil }
            defer { state.hasBegun = true }
            return (due, !state.hasBegun)
        }
        let known = places.kept.places
        // Of another process it is not known what was opened.
        let hour = now.flooredQuotient(by: 3600) * 3600
        let old = known.values.filter { place in
            isFirst && (place.modified < hour || place.answer.map { $0.fresh <= now } ?? false)
        }
        let numbers = Set(due + old.map(\.number)).filter { known[$0] != nil }
        guard !numbers.isEmpty else { return }
        try places.change { kept in
            kept.change += 1
            for number in numbers {
                kept.places[number]?.change = kept.change
                let known = kept.places[number]?.modified ?? 0
                kept.places[number]?.modified = max(now, known + 1)
            }
        }
    }

    private func wakeSleepers() {
        let sleepers = state.withLock { Array($0.sleepers.values) }
        for sleeper in sleepers { sleeper.cancel() }
    }

    // MARK: Looking

    public func children(
        of folder: ItemReference,
        page: PageToken?
    ) async throws(ProviderError) -> ListingPage {
        if folder.id == Self.rootID {
            let all = places.kept.places.values.sorted { $0.number < $1.number }
            return ListingPage(items: all.map { self.folder($0) }, next: nil)
        }
        guard WeatherDocument.parse(folder.id) == nil else {
            throw ProviderError(.notAFolder, detail: "\(folder.path) is a document")
        }
        return ListingPage(items: documents(try place(folder.id)), next: nil)
    }

    public func item(_ reference: ItemReference) async throws(ProviderError) -> Item {
        if reference.id == Self.rootID {
            return Item(id: Self.rootID, kind: .folder, fileName: "")
        }
        guard let (number, document) = WeatherDocument.parse(reference.id) else {
            return folder(try place(reference.id))
        }
        return document.item(in: try place(Self.id(of: number)))
    }

    public func items(
        named name: String,
        in folder: ItemReference
    ) async throws(ProviderError) -> [Item] {
        let key = traits.names.key(name)
        return try await children(of: folder, page: nil).items.filter {
            traits.names.key($0.fileName).isSameText(as: key)
        }
    }

    private static func id(of number: Int) -> ItemID { ItemID("\(number)") }

    private func place(_ id: ItemID) throws(ProviderError) -> WeatherPlace {
        guard let number = Int(id.rawValue), let place = places.kept.places[number] else {
            throw ProviderError(.notFound, detail: "there is no such place any more")
        }
        return place
    }

    private func folder(_ place: WeatherPlace) -> Item {
        var item = Item(
            id: Self.id(of: place.number),
            kind: .folder,
            fileName: place.name,
            parentID: Self.rootID
        )
        item.description = place.title
        item.clientModifiedTime = Timestamp(seconds: place.modified)
        // What lies in it, and its name, are the provider's; it can go.
        item.permissions = [.read, .delete]
        item.isOwn = true
        return item
    }

    private func documents(_ place: WeatherPlace) -> [Item] {
        WeatherDocument.allCases.map { $0.item(in: place) }
    }

    // MARK: Reading

    public func export(
        _ item: ItemReference,
        to format: ExportFormat
    ) async throws(ProviderError) -> ByteStream {
        guard let (number, document) = WeatherDocument.parse(item.id) else {
            throw ProviderError(.notAFile, detail: "\(item.path) is a folder")
        }
        let place = try place(Self.id(of: number))
        let time = now()
        let hour = (time.flooredQuotient(by: 3600) + 1) * 3600
        guard document != .sunAndMoon else {
            isShown(place, until: hour)
            return Self.stream(SunAndMoonText(place: place, now: time).text)
        }
        let (answer, failure) = try await answer(of: place)
        let forecast = try WeatherRequests.read(answer, now: time)
        let report = WeatherReport(
            place: place,
            forecast: forecast,
            answer: answer,
            isOld: failure != nil,
            units: units,
            now: time
        )
        isShown(place, until: failure == nil ? min(hour, answer.fresh) : time + Self.pause)
        return Self.stream(document.text(report))
    }

    /// The place's documents were opened, and read so until a time.
    private func isShown(_ place: WeatherPlace, until time: Int64) {
        state.withLock { state in
            state.due[place.number] = min(state.due[place.number] ?? .max, time)
        }
        wakeSleepers()
    }

    private static func stream(_ text: String) -> ByteStream {
        let rest = Mutex<[UInt8]?>(Array(text.utf8))
        return ByteStream { () async throws(ProviderError) in
            rest.withLock { rest in
                defer { rest = nil }
                return rest
            }
        }
    }

    /// The answer that counts: the kept one while it is fresh, else a new one; where that cannot be had,
    /// the kept one with the reason.
    private func answer(
        of place: WeatherPlace
    ) async throws(ProviderError) -> (WeatherAnswer, ProviderError?) {
        let time = now()
        let kept = places.kept.places[place.number]?.answer
            .flatMap { $0.source == account.source ? $0 : nil }
        // A clock that was set back makes nothing fresh for long.
        if let kept, kept.fetched <= time + 60, time < kept.fresh { return (kept, nil) }
        if let kept, let failure = state.withLock({ $0.failures[place.number] }),
            (0..<Self.pause).contains(time - failure.time)
        {
            return (kept, failure.error)
        }
        do throws(ProviderError) {
            return (try await fetch(place, known: kept, at: time), nil)
        } catch {
            guard let kept, error.kind != .cancelled else { throw error }
            return (kept, error)
        }
    }

    /// Asks the service, once for all who wait.
    private func fetch(
        _ place: WeatherPlace,
        known: WeatherAnswer?,
        at time: Int64
    ) async throws(ProviderError) -> WeatherAnswer {
        let number = place.number
        let task = state.withLock { state in
            if let task = state.running[number] { return task }
            // Ends by itself; an answer is kept even if its callers have gone.
            let task = Task { () -> Result<WeatherAnswer, ProviderError> in
                let result: Result<WeatherAnswer, ProviderError>
                do throws(ProviderError) {
                    let answer = try await requests.forecast(
                        of: place,
                        from: account.source,
                        known: known,
                        now: time
                    )
                    try places.change { $0.places[number]?.answer = answer }
                    result = .success(answer)
                } catch {
                    logger.notice(
                        "the weather could not be read",
                        metadata: ["place": "\(place.name)", "error": "\(error)"]
                    )
                    result = .failure(error)
                }
                self.state.withLock { state in
                    state.running[number] = nil
                    state.failures[number] =
                        if case .failure(let error) = result { (time, error) } else { nil }
                }
                return result
            }
            state.running[number] = task
            return task
        }
        return try await task.value.get()
    }

    // MARK: Places that come and go

    public func createFolder(_ folder: NewFolder) async throws(ProviderError) -> Item {
        guard folder.parent.id == Self.rootID else { throw Self.readOnly }
        if !(try await items(named: folder.name, in: folder.parent)).isEmpty {
            throw ProviderError(.nameTaken, detail: "\(folder.name) is there already")
        }
        let found = try await find(folder.name)
        let time = now()
        let key = traits.names.key(folder.name)
        let place = try places.change { kept throws(ProviderError) in
            guard kept.places.count < WeatherPlaces.most else {
                throw ProviderError(
                    .limitExceeded,
                    detail: "an account has \(WeatherPlaces.most) places at most"
                )
            }
            guard !kept.places.values.contains(where: { self.traits.names.key($0.name) == key })
            else { throw ProviderError(.nameTaken, detail: "\(folder.name) is there already") }
            kept.change += 1
            kept.number += 1
            let place = WeatherPlace(
                number: kept.number,
                name: folder.name,
                title: found.title,
                latitude: found.latitude,
                longitude: found.longitude,
                timeZone: found.timezone,
                change: kept.change,
                modified: time
            )
            kept.places[place.number] = place
            return place
        }
        wakeSleepers()
        return self.folder(place)
    }

    /// The place of a name, as `Valencia` or `Valencia, Venezuela`.
    private func find(_ name: String) async throws(ProviderError) -> FoundPlace {
        let (title, region) = name.cut(atFirst: ",") ?? (name[...], "")
        let found = try await requests.places(
            named: title.trimmingCharacters(in: .whitespaces)
        )
        let wish = region.trimmingCharacters(in: .whitespaces)
        // A name that begins so is none: "Xyz" is no wish for "Xyzburg".
        let named = found.filter {
            FoundPlace.plain($0.name) == FoundPlace.plain(String(title))
        }
        let candidates = named.isEmpty ? found : named
        let inRegion = wish.isEmpty ? candidates : candidates.filter { $0.lies(in: wish) }
        if let place = inRegion.first { return place }
        guard let other = candidates.first else {
            throw ProviderError(.nameRefused, detail: "no place is called \"\(name)\"")
        }
        throw ProviderError(
            .nameRefused,
            detail: "no place is called \"\(name)\"; there is \(other.title)"
        )
    }

    public func delete(_ deletion: Deletion) async throws(ProviderError) {
        guard deletion.item.id != Self.rootID else { throw Self.readOnly }
        // Documents go with their place, and come back with the next news while it stays.
        guard WeatherDocument.parse(deletion.item.id) == nil else { return }
        guard let number = Int(deletion.item.id.rawValue) else { return }
        guard places.kept.places[number] != nil else { return }
        try places.change { kept in
            guard kept.places.removeValue(forKey: number) != nil else { return }
            kept.change += 1
            kept.gone[number] = kept.change
        }
        state.withLock { $0.due[number] = nil }
        wakeSleepers()
    }

    // MARK: What a weather does not do

    private static var readOnly: ProviderError {
        ProviderError(.noPermission, detail: "what lies at a place is the weather's own")
    }

    private static var unsupported: ProviderError {
        ProviderError(.unsupported, detail: "the weather has no such thing")
    }

    public func read(
        _ item: ItemReference,
        revision: Revision?,
        range: Range<Int64>
    ) async throws(ProviderError) -> ByteStream { throw Self.unsupported }

    public func thumbnail(
        of item: ItemReference,
        edge: Int
    ) async throws(ProviderError) -> ByteStream { throw Self.unsupported }

    public func upload(
        _ upload: Upload,
        observer: any UploadObserver
    ) async throws(ProviderError) -> Item { throw Self.readOnly }

    public func move(_ move: Move) async throws(ProviderError) -> Item { throw Self.readOnly }

    public func copy(_ copy: Copy) async throws(ProviderError) -> Item { throw Self.readOnly }

    public func setAttributes(
        of item: ItemReference,
        to change: AttributeChange
    ) async throws(ProviderError) -> Item { throw Self.readOnly }
}

/// Of contents that are never sent.
private struct NoHasher: ContentHasher {
    private var state = SHA256()

    mutating func update(_ bytes: ArraySlice<UInt8>) { state.update(data: bytes) }

    func finalize() -> ContentHash {
        let text = state.finalize().map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        return ContentHash(algorithm: .sha256, value: text)
    }
}
