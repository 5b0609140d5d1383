import Foundation
import OortModel
import OortSignIn

/// One sign-in that the user made.
struct RegisteredAccount: Codable, Hashable, Sendable {
    /// The user's name for it, which is its folder under the mount point.
    var name: String
    /// The service's name.
    var service: String
    /// The service's stable key of the account.
    var identity: String?
    /// The person's name at the service.
    var displayName: String?
    /// The e-mail address at the service.
    var email: String?
    /// Where the account lies, in the service's own JSON; nil for a company's hosts.
    var address: String?
}

extension RegisteredAccount {
    /// Where an account of a company's begins; nil for all of it.
    var folder: AccountFolder? {
        guard Services.named(service)?.oauth != nil, let address else { return nil }
        return try? JSONDecoder().decode(AccountFolder.self, from: Data(address.utf8))
    }
}

/// An entry of the list that cannot be used as it is: it stays where it is, and the others go on.
struct UnusableAccount: Hashable, Sendable {
    /// The entry's name, where it has one that a folder can have.
    var name: String?
    /// What to call it, for people.
    var title: String
    /// What is wrong with it, for people.
    var reason: String
    /// The service's name, where the entry has one.
    var service: String?
    /// The file that has it.
    var path: String

    /// What it means, and what to do.
    var trouble: String {
        "Its entry in \(path) cannot be used: \(reason). Nothing goes out; what is kept here stays. "
            + "Correct the entry or take it out, and sign in again if need be."
    }
}

extension UnusableAccount {
    /// Why nothing is done with it.
    var failure: Failure {
        Failure(
            (name == nil ? title : "The account \(title)") + " cannot be used: \(reason).",
            advice: "Correct its entry in \(path), or take it out and sign in again. What is not "
                + "uploaded yet is kept."
        )
    }
}

/// The list of accounts, in a file of the state folder; no secrets lie in it.
struct AccountRegistry: Sendable {
    /// What the file has.
    struct List {
        /// What can be used, by name.
        var accounts: [RegisteredAccount] = []
        /// What cannot, in the file's order.
        var unusable: [UnusableAccount] = []
        /// The latter as the file has them.
        fileprivate var kept: [Any] = []
    }

    private let path: String
    /// Locked while the list is being changed.
    private let lock: String

    init(folders: Folders) {
        path = folders.accountsFile
        lock = folders.accountsFile + ".lock"
    }

    /// The accounts that can be used, by name; none when there is no file yet.
    ///
    /// - Throws: `Failure` when the file is there and is no list.
    func accounts() throws(Failure) -> [RegisteredAccount] { try list().accounts }

    /// The list, with the entries that cannot be used.
    ///
    /// - Throws: `Failure` when the file is there and is no list.
    func list() throws(Failure) -> List {
        guard FileManager.default.fileExists(atPath: path) else { return List() }
        let entries: [Any]
        do {
            let data = try Data(contentsOf: URL(filePath: path))
            guard let all = try JSONSerialization.jsonObject(with: data) as? [Any] else {
                throw unreadable("it is not the list that Oort writes")
            }
            entries = all
        } catch let failure as Failure {
            throw failure
        } catch let error as CocoaError where error.code == .propertyListReadCorrupt {
            throw unreadable("it is not the JSON that Oort writes")
        } catch { throw unreadable(error.reason) }
        var list = List()
        let names = entries.compactMap { ($0 as? [String: Any])?["name"] as? String }
        for (place, entry) in entries.enumerated() {
            let fields = entry as? [String: Any]
            let name = fields?["name"] as? String
            do throws(Failure) {
                let account = try Self.account(entry)
                // Each is a folder of the mount, and the file may have been edited by hand.
                try AccountName.check(account.name)
                guard names.count(where: { $0.isSameText(as: account.name) }) == 1 else {
                    throw Failure("there are two accounts of this name")
                }
                list.accounts.append(account)
            } catch {
                let isFolder = name.map { (try? AccountName.check($0)) != nil } ?? false
                list.unusable.append(
                    UnusableAccount(
                        name: isFolder ? name : nil,
                        title: name.map { "\"\(TerminalText.line($0))\"" }
                            ?? "Entry \(place + 1) of the list",
                        reason: error.message,
                        service: fields?["service"] as? String,
                        path: path
                    )
                )
                list.kept.append(entry)
            }
        }
        list.accounts.sort { $0.name < $1.name }
        return list
    }

    /// Reads one entry.
    ///
    /// - Throws: `Failure` saying what is wrong with it.
    private static func account(_ entry: Any) throws(Failure) -> RegisteredAccount {
        guard let fields = entry as? [String: Any] else { throw Failure("it is no account") }
        do {
            let data = try JSONSerialization.data(withJSONObject: fields)
            return try JSONDecoder().decode(RegisteredAccount.self, from: data)
        } catch DecodingError.keyNotFound(let key, _) {
            throw Failure("it has no \"\(key.stringValue)\"")
        } catch DecodingError.valueNotFound(_, let context) {
            throw Failure("its \"\(context.codingPath.last?.stringValue ?? "")\" is empty")
        } catch DecodingError.typeMismatch(_, let context) {
            throw Failure("its \"\(context.codingPath.last?.stringValue ?? "")\" is no text")
        } catch {
            throw Failure("it is no account")
        }
    }

    private func unreadable(_ reason: String) -> Failure {
        Failure(
            "The list of accounts \(path) cannot be read: \(reason)",
            advice: "Move the file away and sign in again with the same names; "
                + "what is not uploaded yet is kept."
        )
    }

    /// The account of this name.
    ///
    /// - Throws: `Failure` naming the accounts that there are.
    func account(named name: String) throws(Failure) -> RegisteredAccount {
        let list = try list()
        let all = list.accounts
        if let account = all.first(where: { $0.name == name }) { return account }
        if let entry = list.unusable.first(where: { $0.name == name }) {
            throw entry.failure
        }
        let near = NearName.of(name, among: all.map(\.name)).map { "Did you mean \"\($0)\"? " }
        throw Failure(
            "There is no account \"\(name)\".",
            advice: all.isEmpty
                ? "No account is signed in yet; `oort login SERVICE` adds one."
                : (near ?? "") + "The accounts are: \(all.map(\.name).joined(separator: ", "))."
        )
    }

    /// Adds an account, or replaces the one of its name.
    ///
    /// - Throws: `Failure`, also where an entry of its name cannot be used: nothing is written over it.
    func put(_ account: RegisteredAccount) throws(Failure) {
        try change { list throws(Failure) in
            if let entry = list.unusable.first(where: { $0.name == account.name }) {
                throw entry.failure
            }
            list.accounts.removeAll { $0.name == account.name }
            list.accounts.append(account)
        }
    }

    /// Waits until no other sign-in, of this process or another, is between the choice of a name and the
    /// list: two that took one name would mix up two accounts.
    ///
    /// - Returns: what has to be ended then.
    /// - Throws: `Failure` when another one takes two minutes, or the lock cannot be had.
    func beginEntering() async throws(Failure) -> AccountEntry {
        let path = lock + ".entering"
        let descriptor = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw Failure(
                "The lock \(path) cannot be opened: \(POSIXText.ofErrno()).",
                advice: "Check the free space and the permissions of its folder."
            )
        }
        // A keyring may ask for its password meanwhile.
        var tries = 0
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            guard tries < 1200, (try? await Task.sleep(for: .milliseconds(100))) != nil else {
                close(descriptor)
                throw Failure(
                    "Another sign-in is about to put its account on the list.",
                    advice: "Finish or end it, and try again."
                )
            }
            tries += 1
        }
        return AccountEntry(descriptor: descriptor)
    }

    /// Takes an account off the list.
    func remove(named name: String) throws(Failure) {
        try change { list in list.accounts.removeAll { $0.name == name } }
    }

    /// Reads, changes and writes the list while no other process does.
    private func change(
        _ body: (inout List) throws(Failure) -> Void
    ) throws(Failure) {
        let descriptor = unsafe open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw Failure(
                "The lock \(lock) cannot be opened: \(POSIXText.ofErrno()).",
                advice: "Check the free space and the permissions of its folder."
            )
        }
        defer { close(descriptor) }
        // Its holder writes only one small file.
        var tries = 0
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            guard tries < 500 else {
                throw Failure(
                    "The list of accounts \(path) is being changed by another process.",
                    advice: "Wait for that one to end, and try again."
                )
            }
            tries += 1
            usleep(20_000)
        }
        var list = try list()
        try body(&list)
        try write(list)
    }

    private func write(_ list: List) throws(Failure) {
        do {
            let accounts = list.accounts.sorted { $0.name < $1.name }
            let encoded = try JSONEncoder().encode(accounts)
            let entries = try JSONSerialization.jsonObject(with: encoded) as? [Any] ?? []
            let data = try JSONSerialization.data(
                withJSONObject: entries + list.kept,
                options: [.prettyPrinted, .sortedKeys]
            )
            try PrivateFile.replace(path, with: data)
        } catch {
            throw Failure(
                "The list of accounts \(path) cannot be written: \(error).",
                advice: "Check the free space and the permissions of its folder."
            )
        }
    }
}

/// The rules for the user's own names of accounts.
enum AccountName {
    /// Checks a name that is to be a folder under the mount point.
    ///
    /// By bytes and scalars: to Swift a slash or a dot and an accent after it are one character.
    ///
    /// - Throws: `Failure` saying what is wrong with it.
    static func check(_ name: String) throws(Failure) {
        let problem: String? =
            if name.isEmpty { "it is empty" } else if name.utf8.count > 100 {
                "it is longer than 100 bytes"
            } else if name.has("/") {
                "it contains a slash"
            } else if name.begins(with: ".") {
                "it begins with a dot"
            } else if name.begins(with: "-") {
                "it begins with a dash"
            } else if name.unicodeScalars.contains(where: TerminalText.acts) {
                "it contains a control character"
            } else { nil }
        guard let problem else { return }
        throw Failure(
            "\"\(TerminalText.line(name))\" cannot be an account's name: \(problem).",
            advice: "The name becomes a folder under the mount point; choose one with --name."
        )
    }

    /// The service's name, or with a number when that is taken.
    static func free(for service: String, among taken: [String]) -> String {
        var name = service
        var number = 2
        while taken.contains(name) {
            name = "\(service)-\(number)"
            number += 1
        }
        return name
    }
}

/// The right to put an account on the list, which nobody else has meanwhile.
struct AccountEntry {
    fileprivate let descriptor: Int32

    /// Lets others go on.
    func end() { close(descriptor) }
}
