import Foundation
import OortCatalog
import OortModel

/// Why pending changes wait: those of one kind are one line of the status.
struct PendingKind: Hashable, Sendable {
    /// Whether they are being sent.
    var isUnderWay = false
    /// Whether what arrived of them is read and compared with what was sent.
    var isCompared = false
    /// Whether a program has them open.
    var isHeld = false
    /// Whether only the service has changed them.
    var isNews = false
    /// Whether nothing goes out before a person acts.
    var needsPerson = false
    /// Whether they are tried again later.
    var isLater = false
    /// Whether the account may no longer change them.
    var isForbidden = false
    /// The error's kind, without what it carries.
    var errorKind: String?
    /// The refused folder that they lie in.
    var obstacle: Inode?

    /// The kind of one item.
    init(_ item: PendingItem, obstacle: Inode?, isHeld: Bool, isCompared: Bool = false, now: Date) {
        errorKind = item.errorKind.map { String($0.prefix { $0 != "(" }) }
        guard !item.isUnderWay else {
            isUnderWay = true
            self.isCompared = isCompared
            return
        }
        isForbidden = item.isForbidden
        needsPerson = SyncWords.isRefused(item, now: now)
        if !item.isForbidden, item.errorKind == nil, let obstacle {
            self.obstacle = obstacle
            needsPerson = true
            return
        }
        self.isHeld = isHeld
        isNews = isHeld && item.isNews
        isLater = (item.wait(now: Timestamp(now).inMilliseconds) ?? 0) > 1000
    }
}

extension SyncWords {
    /// The groups of pending items as a person reads them: first those that need a person, then the
    /// largest; `obstacles` are the paths of refused folders.
    static func groups(
        _ survey: PendingSurvey<PendingKind>,
        below folder: String,
        obstacles: [Inode: String],
        now: Date
    ) -> [PendingGroup] {
        let groups = survey.groups.map { kind, group in
            let first = group.examples.first
            var reason = kind.errorKind.flatMap { errorWords($0) }
            if kind.isForbidden { reason = first.flatMap { error(of: $0) } }
            if kind.isCompared { reason = reason ?? noAnswer }
            var next = first.map { item in
                self.next(
                    for: item,
                    isHeld: kind.isHeld,
                    isCompared: kind.isCompared,
                    now: now
                )
            }
            if let obstacle = kind.obstacle {
                next = "waits for \(obstacles[obstacle] ?? folder)"
            }
            return PendingGroup(
                count: group.count,
                bytes: group.bytes,
                isUnderWay: kind.isUnderWay,
                needsPerson: kind.needsPerson,
                reason: reason,
                next: next ?? "waits its turn",
                examples: group.examples.map { item in
                    PendingExample(
                        path: ([folder] + item.path).joined(separator: "/"),
                        detail: kind.obstacle != nil || kind.isForbidden
                            ? nil : item.errorDetail.flatMap { $0.isEmpty ? nil : $0 }
                    )
                }
            )
        }
        return groups.sorted {
            ($0.needsPerson ? 1 : 0, $0.count, $1.next) > (
                $1.needsPerson ? 1 : 0, $1.count, $0.next
            )
        }
    }

    /// How long the items that need no person will take, by measured bytes and items a second.
    ///
    /// - Returns: nil while nothing was measured that says it.
    static func secondsLeft(
        bytes: Int64,
        count: Int,
        bytesPerSecond: Double?,
        itemsPerSecond: Double?
    ) -> Double? {
        guard count > 0 else { return nil }
        let byItems = itemsPerSecond.map { Double(count) / $0 }
        guard bytes > 0 else { return byItems }
        guard let bytesPerSecond else {
            // Of small files the calls take the time.
            return bytes / Int64(count) < 1 << 16 ? byItems : nil
        }
        return max(Double(bytes) / bytesPerSecond, byItems ?? 0)
    }
}
