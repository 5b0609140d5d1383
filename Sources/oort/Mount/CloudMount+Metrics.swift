import Foundation
import Logging
import OortCatalog
import OortContentStore
import OortFileSystem
import OortModel
import OortSync
import OortTransport
import Synchronization

extension CloudMount {
    func metrics() async -> String {
        let usage = store.usage
        var text = MetricsText()
        text.add(
            "oort_cached_bytes",
            .gauge,
            "Bytes of contents that can be fetched again.",
            usage.cached
        )
        text.add(
            "oort_cache_limit_bytes",
            .gauge,
            "The most of these.",
            options.settings.cacheSize.bytes
        )
        text.add(
            "oort_staged_bytes",
            .gauge,
            "Bytes that programs wrote and no service has.",
            usage.staged
        )
        text.add(
            "oort_start_time_seconds",
            .gauge,
            "When the mount began.",
            Int64(since.timeIntervalSince1970)
        )
        for account in await status().accounts {
            let labels = ["account": account.name, "service": account.service]
            for state in AccountStatus.State.mounted {
                text.add(
                    "oort_account_state",
                    .gauge,
                    "1 for the state that an account is in.",
                    account.state == state ? 1 : 0,
                    labels.merging(["state": state.rawValue]) { $1 }
                )
            }
            text.add(
                "oort_refused_changes",
                .gauge,
                "Pending changes that go out only when somebody does something.",
                Int64(account.refusedCount ?? 0),
                labels
            )
            text.add(
                "oort_local_items",
                .gauge,
                "Items that stay on this machine by the person's rules.",
                Int64(account.staysHere ?? 0),
                labels
            )
            text.add(
                "oort_conflicts",
                .gauge,
                "Conflict copies that nobody has put away.",
                Int64(account.conflicts.count),
                labels
            )
            for (direction, isUp) in [("up", true), ("down", false)] {
                text.add(
                    "oort_transfers",
                    .gauge,
                    "Contents on their way now.",
                    Int64(account.transfers.count { $0.isUpload == isUp }),
                    labels.merging(["direction": direction]) { $1 }
                )
            }
        }
        for (_, account) in accounts.withLock({ $0 }).sorted(by: { $0.key < $1.key }) {
            await add(account, to: &text)
        }
        return text.description
    }

    /// The counts of an account since the mount began, or since its last sign-in, and what is pending.
    private func add(_ account: MountedAccount, to text: inout MetricsText) async {
        let labels = ["account": account.name, "service": account.service]
        do throws(CatalogError) {
            text.add(
                "oort_pending_changes",
                .gauge,
                "Changes that the service does not have.",
                Int64(try await catalog.pendingCount(account.id)),
                labels
            )
        } catch {
            // What cannot be read has no value; none is not 0.
            logger.error("what is pending could not be read", metadata: ["error": "\(error)"])
        }
        let reads = files.reads[account.id]
        text.add(
            "oort_cache_hits_total",
            .counter,
            "Reads whose bytes were all here.",
            reads.hits,
            labels
        )
        text.add(
            "oort_cache_misses_total",
            .counter,
            "Reads that waited for the service.",
            reads.misses,
            labels
        )
        text.add(
            "oort_finished_changes_total",
            .counter,
            "Changes that the service carried out.",
            account.engine.finished.total,
            labels
        )
        for (direction, meter) in [("up", account.meter.sent), ("down", account.meter.received)] {
            text.add(
                "oort_transferred_bytes_total",
                .counter,
                "Bytes of requests' and answers' bodies.",
                meter.total,
                labels.merging(["direction": direction]) { $1 }
            )
        }
        for (outcome, count) in account.meter.calls.sorted(by: { $0.key < $1.key }) {
            text.add(
                "oort_calls_total",
                .counter,
                "Calls by the class of the answer's status, or the error without an answer.",
                count,
                labels.merging(["outcome": outcome]) { $1 }
            )
        }
    }
}

extension AccountStatus.State {
    /// The states of an account of a running mount.
    fileprivate static let mounted: [AccountStatus.State] = [
        .reading, .upToDate, .paused, .syncing, .attention, .offline, .trouble,
    ]
}

/// Figures in the Prometheus text form 0.0.4.
struct MetricsText: CustomStringConvertible {
    /// How a figure moves.
    enum Kind: String {
        /// Up and down.
        case gauge
        /// Up only, from 0 at each start.
        case counter
    }

    private struct Family {
        var name: String
        var kind: Kind
        var help: String
        var lines: [String] = []
    }

    private var families: [Family] = []

    /// Adds one figure; those of one name stand together.
    mutating func add(
        _ name: String,
        _ kind: Kind,
        _ help: String,
        _ value: Int64,
        _ labels: [String: String] = [:]
    ) {
        let pairs = labels.sorted { $0.key < $1.key }.map { key, value in
            let text = value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
                .replacing("\n", with: "\\n")
            return "\(key)=\"\(text)\""
        }
        let line = name + (pairs.isEmpty ? "" : "{\(pairs.joined(separator: ","))}") + " \(value)"
        if let index = families.firstIndex(where: { $0.name == name }) {
            families[index].lines.append(line)
        } else {
            families.append(Family(name: name, kind: kind, help: help, lines: [line]))
        }
    }

    var description: String {
        families.map { family in
            "# HELP \(family.name) \(family.help)\n# TYPE \(family.name) \(family.kind.rawValue)\n"
                + family.lines.joined(separator: "\n") + "\n"
        }.joined()
    }
}
