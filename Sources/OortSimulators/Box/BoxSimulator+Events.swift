import Foundation
import OortModel
import Synchronization

extension BoxSimulator {
    /// Sends an event with the next ones, unchanged: a late one, or one of an older state.
    public func tell(_ event: JSON) { state.withLock { $0.extraEvents.append(event) } }

    func events(_ request: SimulatorRequest) -> SimulatorAnswer {
        if request.method == "OPTIONS" { return newsServer(request) }
        let limit = min(max(request.query("limit").flatMap { Int($0) } ?? 100, 1), 500)
        let position = request.query("stream_position") ?? "0"
        if position == "now" {
            let sequence = account.withTree { $0.sequence }
            return .json([
                "chunk_size": 0, "next_stream_position": Self.position(sequence), "entries": [],
            ])
        }
        guard let start = Int(position) else {
            return failure(400, "bad_request", request: request)
        }
        let repeats = habits.repeatsEvents
        let extra = state.withLock { state in
            let extra = state.extraEvents
            state.extraEvents = []
            return extra
        }
        let (entries, next) = account.withTree { tree -> ([JSON], Int) in
            let all = tree.changes(after: start)
            let some = all.prefix(limit / 2)
            let isLast = some.count == all.count
            let next = isLast ? tree.sequence : some.last?.sequence ?? tree.sequence
            // Each in no order, and some of them once more.
            var entries = some.reversed().flatMap { change in
                guard let told = event(change, in: tree) else { return [JSON]() }
                return [told] + earlier(change, told, after: start, in: tree)
            }
            if repeats {
                entries += entries.prefix(limit / 4)
                if let last = tree.changes(after: 0).last(where: { $0.sequence <= start }),
                    let told = event(last, in: tree)
                {
                    entries.append(told)
                }
            }
            return (entries, next)
        }
        return .json([
            "chunk_size": .integer(Int64(entries.count + extra.count)),
            "next_stream_position": Self.position(next), "entries": .array(entries + extra),
        ])
    }

    /// A number of 64 bits comes as a number or as a text.
    private static func position(_ sequence: Int) -> JSON {
        sequence % 2 == 0 ? .integer(Int64(sequence)) : .string(String(sequence))
    }

    private func event(
        _ change: SimulatedTree.ItemChange,
        in tree: SimulatedTree
    ) -> JSON? {
        var json: [String: JSON] = [
            "type": "event", "event_id": .string("f82c3ba03e41f7e8a7608363cc6c\(change.sequence)"),
            "created_at": "2026-11-21T14:00:00-07:00", "session_id": .null,
            "created_by": ["type": "user", "id": .string(Self.personID(account.person))],
        ]
        guard let item = tree.item(change.id) else {
            // Deleted for good: what was in the trash.
            json["event_type"] = "ITEM_TRASH"
            json["source"] = [
                "type": .string(Self.type(ofID: change.id)),
                "id": .string(Self.number(change.id)), "item_status": "deleted",
            ]
            return .object(json)
        }
        if item.extra["untold"] != nil, item.version == 1 { return nil }
        if item.id == Self.rootID { return nil }
        let noted = item.extra["eventVersion"]?.integer == item.version ? item.extra["event"] : nil
        let type: JSON =
            if tree.isTrashed(item.id) {
                "ITEM_TRASH"
            } else if item.extra["taggedVersion"]?.integer == item.version {
                "TAG_ITEM_CREATE"
            } else {
                noted
                    ?? (item.movedVersion == item.version
                        ? "ITEM_MOVE"
                        : item.version > 1
                            ? "ITEM_MODIFY" : item.isFolder ? "ITEM_CREATE" : "ITEM_UPLOAD")
            }
        json["event_type"] = type
        json["source"] = .object(full(item, in: tree, all: false))
        return .object(json)
    }

    /// The events of an item before its last one, each with the item as it is now.
    private func earlier(
        _ change: SimulatedTree.ItemChange,
        _ told: JSON,
        after start: Int,
        in tree: SimulatedTree
    ) -> [JSON] {
        guard let item = tree.item(change.id), !tree.isTrashed(item.id) else { return [] }
        return (item.extra["events"]?.elements ?? []).compactMap { noted in
            guard let sequence = noted["sequence"]?.integer, sequence > start,
                Int(sequence) != change.sequence, let type = noted["type"]
            else { return nil }
            return [
                "type": "event", "event_type": type, "source": told["source"] ?? .null,
                "event_id": .string("f82c3ba03e41f7e8a7608363cc6c\(sequence)"),
                "created_at": "2026-11-21T14:00:00-07:00",
            ]
        }
    }

    private static func type(ofID id: String) -> String {
        switch id.first {
        case "d": "folder"
        case "w": "web_link"
        default: "file"
        }
    }

    // MARK: Waiting

    private func newsServer(_ request: SimulatorRequest) -> SimulatorAnswer {
        let channel = account.tokens.makeSecret("")
        let path = "/subscribe?channel=\(channel)&stream_type=changes"
        let url =
            habits.pollsInTheClear
            ? "http://\(Hosts.news)\(path)" : request.url(host: Hosts.news, path: path)
        return .json([
            "chunk_size": 1,
            "entries": [
                [
                    "type": "realtime_server", "url": .string(url), "ttl": "10",
                    "max_retries": "10", "retry_timeout": 610,
                ]
            ],
        ])
    }

    func poll(_ request: SimulatorRequest) async -> SimulatorAnswer {
        // Box's own kit sends one.
        if request.header("Authorization") != nil { state.withLock { $0.tokensAtNews += 1 } }
        guard account.tokens.secrets.contains(request.query("channel") ?? ""),
            let position = request.query("stream_position").flatMap({ Int($0) })
        else { return .text("not for you", status: 400) }
        if spend(\.shortPolls) { return .json(["message": "reconnect"]) }
        let isNews = await account.waitForChange(after: position, atMost: .seconds(600))
        return .json(["message": isNews ? "new_change" : "reconnect"])
    }
}
