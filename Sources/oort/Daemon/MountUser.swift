import Foundation

/// A program that uses a mount: has a file of it open, or stands in one of its folders.
///
/// Of other users' programs only root can know.
struct MountUser: Hashable, Sendable {
    /// The process.
    var process: Int32
    /// The program's name.
    var name: String
    /// The first file of the mount that it has open; nil where it only stands in a folder.
    var file: String?

    /// The processes that use the mount at a path, as /proc shows them (`man 5 proc`), without the daemon
    /// and those that it started; does not touch the mount.
    static func all(of mountPoint: String, but daemon: Int32) -> [MountUser] {
        let own = getpid()
        let processes = entries("/proc").compactMap { Int32($0) }.sorted()
        return processes.compactMap { process in
            guard process != own, process != daemon, parent(of: process) != daemon else {
                return nil
            }
            let folder = "/proc/\(process)"
            func lies(_ link: String) -> String? {
                let target = try? FileManager.default.destinationOfSymbolicLink(atPath: link)
                return target.flatMap {
                    $0 == mountPoint || $0.hasPrefix(mountPoint + "/") ? $0 : nil
                }
            }
            let files = entries(folder + "/fd").lazy.compactMap { lies("\(folder)/fd/\($0)") }
            let file = files.first { $0 != mountPoint } ?? lies(folder + "/exe")
            let stands = lies(folder + "/cwd") != nil || lies(folder + "/root") != nil
            guard file != nil || stands || !files.isEmpty else { return nil }
            let name = (try? String(contentsOfFile: folder + "/comm", encoding: .utf8)) ?? ""
            return MountUser(
                process: process,
                name: name.trimmingCharacters(in: .whitespacesAndNewlines),
                file: file
            )
        }
    }

    /// The words for a person about them.
    static func words(_ users: [MountUser], of mountPoint: String) -> String {
        let most = 5
        let names = users.prefix(most).map { user in
            let use =
                user.file.map { TerminalText.line(String($0.dropFirst(mountPoint.count + 1))) }
                ?? "in its folder"
            return "\(TerminalText.line(user.name)) (process \(user.process): \(use))"
        }
        let rest = users.count > most ? " and \(users.count - most) more" : ""
        return "In use by \(names.joined(separator: ", "))\(rest). What was written is kept; "
            + "programs that have not let go of the mount in five seconds get errors."
    }

    private static func entries(_ folder: String) -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    }

    /// The process that started another: the fourth field of `stat`, after the name in brackets.
    private static func parent(of process: Int32) -> Int32? {
        let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
        let rest = text?.split(separator: ")").last?.split(separator: " ") ?? []
        return rest.count > 1 ? Int32(rest[1]) : nil
    }
}
