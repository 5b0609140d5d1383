import Foundation
import Logging
import OortCatalog
import OortFileSystem
import OortModel

extension CloudMount {
    func watch(_ request: WatchRequest) throws(Failure) -> AsyncStream<WatchEvent> {
        let folder = try watchedNames(request.path ?? mountPoint)
        return try watchers.add(below: folder, of: mountPoint, catalog) { [weak self] in
            await self?.finishTelling()
        }
    }

    /// Reports to watchers a name that a program wanted in vain.
    func tell(refused name: RefusedName) {
        guard !watchers.isEmpty else { return }
        do throws(CatalogError) {
            // A folder that is gone has no path to report.
            guard let folder = try InodePaths(catalog, below: "").path(of: name.folder) else {
                return
            }
            let names = folder.parts(between: "/").map { String($0) }
            watchers.tell(refused: names + [name.name], name.reason)
        } catch {
            logger.info("a refused name was not reported", metadata: ["cause": "\(error)"])
        }
    }

    /// Reports to watchers how the accounts are, until the task is cancelled.
    func keepWatchersInformed() async {
        await watchers.keepInformed { [self] in
            var states: [String: String] = [:]
            for account in await status().accounts { states[account.name] = account.state.rawValue }
            return states
        }
    }

    /// The shown names from the mount's top down to what is at a path.
    private func watchedNames(_ path: String) throws(Failure) -> [String] {
        let shown = TerminalText.line(path)
        guard path != mountPoint else { return [] }
        guard let below = path.dropping(beginning: mountPoint + "/") else {
            throw Failure(
                "\(shown) does not lie in the mount \(mountPoint).",
                advice: "Name a file or folder below it."
            )
        }
        do throws(CatalogError) {
            var node: Node? = try catalog.node(.root)
            var names: [String] = []
            for part in below.parts(between: "/") where !part.isEmpty {
                node = try node.flatMap { folder throws(CatalogError) in
                    try catalog.lookup(String(part), in: folder)
                }
                if let node { names.append(node.name) }
            }
            if node != nil { return names }
        } catch {
            throw CatalogTrouble.failure(error, path: options.folders.catalogFile)
        }
        throw Failure("\(shown) is not there.", advice: "Check the spelling.")
    }
}
