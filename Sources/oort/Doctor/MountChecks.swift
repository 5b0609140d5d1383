import Foundation
import OortCatalog
import SwiftFUSE

/// The mount itself, what earlier ones left, and the catalog.
struct MountChecks {
    private let patient: Patient

    init(_ patient: Patient) { self.patient = patient }

    /// Whether a mount runs and stands, or one could be made.
    func mount() async -> [Finding] {
        if case .silent(let failure) = patient.daemon { return [.trouble("mount", failure)] }
        guard let point = patient.mountPoint else {
            return [
                .trouble(
                    "mount",
                    "the look at the mount point hangs",
                    advice: "A disk or network folder on the way to it hangs: see dmesg, mount."
                )
            ]
        }
        switch patient.daemon {
        case .silent: return []
        case .answers(let report):
            guard let mount = report.mount else { return [] }
            let table = try? MountTable.current()
            guard let table, table.mount(at: point.path)?.type == Self.type else {
                return [
                    .trouble(
                        "mount",
                        "the mount runs (process \(mount.process)), but nothing of Oort's is mounted at "
                            + point.path,
                        advice: "Somebody detached it. Start it anew: oort unmount, then oort mount"
                    )
                ]
            }
            var findings = [Finding.ok("mount", "mounted at \(point.path)")]
            if mount.version != OortVersion.current {
                findings.append(
                    .trouble(
                        "mount",
                        "the running mount is version \(mount.version), this is "
                            + OortVersion.current,
                        advice: "Start it anew: oort unmount, then oort mount"
                    )
                )
            }
            if let trouble = mount.trouble {
                findings.append(.trouble("mount", trouble, advice: nil))
            }
            if let words = StatusText.keptAboveLimit(mount) {
                findings.append(.trouble("cache", words, advice: nil))
            }
            for folder in mount.foldersAside ?? [] {
                findings.append(
                    .trouble(
                        "mount",
                        "what was not uploaded when a catalog was lost is in \(folder)",
                        advice: "Look through it for what you miss, then remove the folder."
                    )
                )
            }
            if let folder = mount.foundBeneath {
                findings.append(
                    .trouble(
                        "mount",
                        "what programs wrote before it was mounted is in \(folder)",
                        advice: "Copy what you need of it into an account, then remove the folder."
                    )
                )
            }
            return findings
        case .none(let died):
            if let obstacle = await TimeLimit.blocking({ point.obstacle() }) {
                return [.trouble("mount", obstacle)]
            }
            guard let died else {
                return [.ok("mount", "not mounted; \(point.path) is free for it")]
            }
            return [
                .trouble(
                    "mount",
                    "the last mount (process \(died.process), at \(died.mountPoint)) did not end "
                        + "orderly",
                    advice: "Mount again: oort mount. What was not uploaded goes on then. Its log: "
                        + died.log
                )
            ]
        }
    }

    /// Mounts of Oort's elsewhere, whose processes may be gone.
    func leftovers() async -> [Finding] {
        let own = patient.mountPoint?.path
        let dead = await TimeLimit.blocking {
            let rows = (try? MountTable.current().rows) ?? []
            return rows.filter { $0.type == Self.type && $0.path != own }.map(\.path)
                .filter { path in
                    var room = statvfs()
                    return unsafe statvfs(path, &room) != 0
                        && (errno == ENOTCONN || errno == ECONNABORTED)
                }
        }
        guard !dead.isEmpty else { return [.ok("leftovers", "there is no dead mount")] }
        return dead.map { path in
            .trouble(
                "leftovers",
                "\(path) shows a mount whose process is gone",
                advice: "Free it: fusermount3 -u -z \(Shell.quoted(path))"
            )
        }
    }

    /// The type of Oort's mounts in the mount table.
    private static let type = "fuse.oort"

    /// Whether the catalog's file is sound.
    func catalog() async -> [Finding] {
        let path = patient.folders.catalogFile
        guard FileManager.default.fileExists(atPath: path) else {
            return [.ok("catalog", "there is none yet; the first mount makes it")]
        }
        do throws(CatalogError) {
            try await Catalog.examine(path: path)
            return [.ok("catalog", "\(path) is sound")]
        } catch {
            return [.trouble("catalog", CatalogTrouble.failure(error, path: path))]
        }
    }
}
