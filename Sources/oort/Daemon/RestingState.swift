import Foundation
import Logging
import OortCatalog
import OortModel

/// What is known of the accounts while no mount runs.
struct RestingState {
    private let folders: Folders

    init(folders: Folders) { self.folders = folders }

    /// The accounts with what the catalog last heard of them.
    ///
    /// - Throws: `Failure` when the list of accounts or the catalog cannot be read.
    func report() throws(Failure) -> StatusReport {
        let accounts = try AccountRegistry(folders: folders).accounts()
        let known = try knownAccounts()
        return StatusReport(
            mount: nil,
            accounts: accounts.map { account in
                let known = known.first { $0.name == account.name }
                return AccountStatus(
                    name: account.name,
                    service: account.service,
                    person: account.email ?? account.displayName,
                    state: .notMounted,
                    trouble: known?.trouble,
                    usedBytes: known?.quota?.used,
                    totalBytes: known?.quota?.total,
                    knownItems: nil,
                    pendingCount: 0,
                    pending: [],
                    transfers: [],
                    conflicts: []
                )
            }
        )
    }

    private func knownAccounts() throws(Failure) -> [Account] {
        guard FileManager.default.fileExists(atPath: folders.catalogFile) else { return [] }
        do {
            let catalog = try Catalog(
                path: folders.catalogFile,
                cachedNodes: 16,
                logger: Logger(label: "oort") { _ in SwiftLogNoOpLogHandler() }
            )
            defer { try? catalog.close() }
            return try catalog.accounts()
        } catch {
            throw CatalogTrouble.failure(error, path: folders.catalogFile)
        }
    }
}

/// What a person is told about a catalog that cannot be opened.
enum CatalogTrouble {
    /// The words for an error of the catalog's.
    static func failure(_ error: CatalogError, path: String) -> Failure {
        switch error {
        case .corrupt:
            Failure(
                "The catalog \(path) is damaged.",
                advice: "Move it and its -wal and -shm files away and mount again: the tree is "
                    + "read anew. What was not uploaded lies in the folder \"staged\" beside it."
            )
        case .tooNew:
            Failure(
                "The catalog \(path) was written by a newer Oort.",
                advice: "Install that version again, or a newer one."
            )
        case .diskFull:
            Failure(
                "There is no room on the disk for the catalog \(path).",
                advice: "Free some space and try again; nothing is lost."
            )
        default:
            Failure(
                "The catalog \(path) cannot be opened: \(error).",
                advice: "Check the disk and the permissions of its folder."
            )
        }
    }
}
