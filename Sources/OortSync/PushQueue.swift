import OortModel
import OortPlanner

/// The plan that is being carried out: what of it can be begun, what is under way, what is done.
///
/// A pure value, which neither waits nor asks anybody; moments are milliseconds since 1970. The engine
/// loads a plan, takes batches while there are any, and reports the end of each. An operation that is under
/// way when another plan is loaded stays under way, and counts.
struct PushQueue {
    /// One operation, or several of a kind that the service takes in one call.
    struct Batch: Sendable {
        /// The number of its plan.
        var plan: UInt64
        /// The news that its plan knew (`PlannedWork.newsNumber`).
        var newsNumber: UInt64
        var members: [(index: Int, operation: RemoteOperation)] = []
        /// Whether no more goes into it.
        var isFull = false
        /// Whether it is one large content.
        var isLarge = false
        /// Whether it is of small contents that share calls.
        var isUploadBatch = false
    }

    private let sizes: ProviderTraits.BatchSizes
    private let mostInFlight: Int

    /// Counts plans, so that an answer to an older plan's operation is not taken for this one's.
    private(set) var number: UInt64 = 0
    /// The news that the plan knew (`PlannedWork.newsNumber`).
    private var newsNumber: UInt64 = 0
    /// The news for which the operations were last looked through.
    private var leftNews: UInt64 = 0
    private var operations: [RemoteOperation] = []
    private var isStarted: [Bool] = []
    private var isDone: [Bool] = []
    /// All operations before this index are started.
    private var firstUnstarted = 0

    /// Operations under way, of this plan and of earlier ones, with the bytes sent; and operations without
    /// an answer that the service is being asked about, with the bytes read.
    private(set) var running: [Inode: SyncStatus.Transfer] = [:]
    /// The items that the running operations change.
    private var runningItems: [Inode: ItemID] = [:]
    /// How many batches are under way.
    private(set) var inFlight = 0
    /// How many of those are a large content each.
    private var largeInFlight = 0
    /// How many of those are batches of small contents, and when the last of them was begun.
    private var uploadBatches = 0
    private var lastUploadBatch: Int64 = 0

    /// How long a batch of uploads that is not full waits for those under way at most, milliseconds.
    private static let longestFilling: Int64 = 5000
    /// How many large contents go up at once, each by as many requests as its provider sends: more
    /// would only make all of them end later.
    private static let mostLarge = 4
    /// Bytes of the contents of one batch at most, so that none takes long.
    private static let largestBatch: Int64 = 32 << 20

    /// An empty queue for a service that takes so much in one call, and so many calls at once.
    init(_ sizes: ProviderTraits.BatchSizes, mostInFlight: Int) {
        self.sizes = sizes
        self.mostInFlight = max(1, mostInFlight)
    }

    // MARK: The plan

    /// Another plan takes the place of this one.
    mutating func load(_ operations: [RemoteOperation], newsNumber: UInt64) {
        number += 1
        self.newsNumber = newsNumber
        leftNews = newsNumber
        self.operations = operations
        isStarted = Array(repeating: false, count: operations.count)
        isDone = isStarted
        firstUnstarted = 0
    }

    /// The items that the plan has operations for.
    var planned: Set<Inode> { Set(operations.map(\.inode)) }

    /// Whether the plan has anything that can be begun.
    var hasWork: Bool {
        operations.indices.suffix(from: firstUnstarted).contains { index in
            !isStarted[index] && operations[index].after.allSatisfy { isDone[$0] }
        }
    }

    /// Whether anything is asked of the service, or will be at once.
    var isAnythingUnderWay: Bool { inFlight > 0 || hasWork }

    /// Whether nothing is asked of the service, nor asked about.
    var isQuiet: Bool { inFlight == 0 && running.isEmpty }

    /// Whether there was a plan, and nothing of it is under way any more.
    var isExhausted: Bool { inFlight == 0 && !operations.isEmpty }

    /// Whether anything of the plan was done, after which another plan is due.
    var hasDone: Bool { isDone.contains(true) }

    /// Leaves to a later plan the operations that fit and are not begun, with all that come after them.
    ///
    /// - Returns: whether there were any.
    @discardableResult
    mutating func leave(where fits: (RemoteOperation) -> Bool) -> Bool {
        var hasLeft = false
        for index in operations.indices where !isStarted[index] && fits(operations[index]) {
            isStarted[index] = true
            hasLeft = true
        }
        return hasLeft
    }

    /// Whether news came since the operations were last looked through for those that it spoils.
    mutating func hears(_ news: UInt64) -> Bool {
        defer { leftNews = news }
        return leftNews != news
    }

    // MARK: Choosing

    /// The next batch, which is under way from now on; nil where nothing can be begun now.
    ///
    /// `waitsUntil` is set to the moment at which a batch that waits to fill is begun at the latest.
    mutating func next(at now: Int64, waitsUntil: inout Int64?) -> Batch? {
        guard inFlight < mostInFlight else { return nil }
        while firstUnstarted < operations.count, isStarted[firstUnstarted] { firstUnstarted += 1 }
        var choice = self.choice { _ in true }
        // While a batch is under way, more uploads come that can share the next one's calls.
        let latest = lastUploadBatch + Self.longestFilling
        if choice.isUploadBatch, !choice.isFull, uploadBatches > 0,
            (lastUploadBatch..<latest).contains(now)
        {
            waitsUntil = latest
            choice = self.choice { !isBatchedUpload($0) }
        }
        guard !choice.members.isEmpty else { return nil }
        for member in choice.members {
            isStarted[member.index] = true
            running[member.operation.inode] = SyncStatus.Transfer(
                inode: member.operation.inode,
                sent: 0,
                size: bytes(of: member.operation)
            )
        }
        inFlight += 1
        if choice.isLarge { largeInFlight += 1 }
        if choice.isUploadBatch {
            uploadBatches += 1
            lastUploadBatch = now
        }
        return choice
    }

    /// The first wanted operation that can be begun, and those that can share its call.
    private func choice(_ isWanted: (RemoteOperation) -> Bool) -> Batch {
        var batch = Batch(plan: number, newsNumber: newsNumber)
        var room = 1
        var total: Int64 = 0
        for index in firstUnstarted..<operations.count where !isStarted[index] {
            let operation = operations[index]
            guard operation.after.allSatisfy({ isDone[$0] }), running[operation.inode] == nil,
                isWanted(operation),
                bytes(of: operation) <= sizes.largestUpload || largeInFlight < Self.mostLarge
            else { continue }
            if let first = batch.members.first {
                guard isAlike(first.operation, operation) else { continue }
                guard total + bytes(of: operation) <= Self.largestBatch else {
                    batch.isFull = true
                    continue
                }
            } else {
                room = batchSize(of: operation)
                batch.isLarge = bytes(of: operation) > sizes.largestUpload
                batch.isUploadBatch = isBatchedUpload(operation)
            }
            batch.members.append((index, operation))
            total += bytes(of: operation)
            if batch.members.count >= room {
                batch.isFull = true
                break
            }
        }
        return batch
    }

    private func isBatchedUpload(_ operation: RemoteOperation) -> Bool {
        switch operation.action {
        case .upload, .replace: batchSize(of: operation) > 1
        case .createFolder, .move, .delete, .setAttributes, .duplicate: false
        }
    }

    private func bytes(of operation: RemoteOperation) -> Int64 {
        switch operation.action {
        case .upload(_, let content), .replace(_, let content): content.size
        case .createFolder, .move, .delete, .setAttributes, .duplicate: 0
        }
    }

    private func isAlike(_ one: RemoteOperation, _ other: RemoteOperation) -> Bool {
        switch (one.action, other.action) {
        case (.createFolder, .createFolder), (.move, .move), (.delete, .delete): true
        case (.upload, .upload), (.upload, .replace), (.replace, .upload), (.replace, .replace):
            bytes(of: other) <= sizes.largestUpload
        default: false
        }
    }

    private func batchSize(of operation: RemoteOperation) -> Int {
        switch operation.action {
        case .createFolder: sizes.createFolder
        case .upload, .replace: bytes(of: operation) <= sizes.largestUpload ? sizes.upload : 1
        case .move: sizes.move
        case .delete: sizes.delete
        case .setAttributes, .duplicate: 1
        }
    }

    // MARK: What is under way

    /// The ids of the items that are being changed at the service.
    var itemsUnderWay: Set<ItemID> { Set(runningItems.values) }

    /// An operation that is under way changes this item.
    mutating func changes(_ item: ItemID?, in inode: Inode) { runningItems[inode] = item }

    /// The service is asked what became of an earlier operation on an item: that counts as under way
    /// until it has `ended`.
    mutating func isAsked(about inode: Inode) {
        running[inode] = SyncStatus.Transfer(inode: inode, sent: 0, size: 0)
    }

    /// A content of so many bytes is read at the service, to be compared with what was sent of an item.
    mutating func compares(_ size: Int64, of inode: Inode) {
        guard running[inode] != nil else { return }
        running[inode] = SyncStatus.Transfer(inode: inode, sent: 0, size: size, isUpload: false)
    }

    /// So many bytes of a content were sent so far, or read to be compared.
    mutating func sent(_ bytes: Int64, of inode: Inode) {
        guard let transfer = running[inode], transfer.sent < bytes else { return }
        running[inode]?.sent = bytes
    }

    /// The operation on an item is not under way any more.
    mutating func ended(_ inode: Inode) {
        running[inode] = nil
        runningItems[inode] = nil
    }

    /// A member of a batch was done: what comes after it in the plan can be begun.
    mutating func done(_ index: Int, of batch: Batch) {
        if batch.plan == number { isDone[index] = true }
    }

    /// Nothing of a batch is under way any more.
    ///
    /// - Returns: whether another plan was made meanwhile, which left its items alone.
    mutating func ended(_ batch: Batch) -> Bool {
        inFlight -= 1
        if batch.isLarge { largeInFlight -= 1 }
        if batch.isUploadBatch { uploadBatches -= 1 }
        return batch.plan != number
    }
}
