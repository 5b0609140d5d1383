import Foundation
import OortModel

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

/// The list of accounts, in a file of the state folder; no secrets lie in it.
struct AccountRegistry: Sendable {
    private let path: String
    /// Held by whoever changes the list.
    private let lock: String

    init(folders: Folders) {
        path = folders.accountsFile
        lock = folders.accountsFile + ".lock"
    }

    /// All accounts, by name; none when there is no file yet.
    ///
    /// - Throws: `Failure` when the file is there and cannot be understood.
    func accounts() throws(Failure) -> [RegisteredAccount] {
        guard FileManager.default.fileExists(atPath: path) else { return [] }
        let all: [RegisteredAccount]
        do {
            let data = try Data(contentsOf: URL(filePath: path))
            all = try JSONDecoder().decode([RegisteredAccount].self, from: data)
                .sorted { $0.name < $1.name }
        } catch {
            throw unreadable(Self.words(error))
        }
        // Each is a folder of the mount, and the file may have been edited by hand.
        for account in all {
            do throws(Failure) { try AccountName.check(account.name) } catch {
                throw unreadable(error.message)
            }
        }
        for (account, next) in zip(all, all.dropFirst()) where account.name == next.name {
            throw unreadable("there are two accounts \"\(account.name)\".")
        }
        return all
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
        let all = try accounts()
        if let account = all.first(where: { $0.name == name }) { return account }
        let near = NearName.of(name, among: all.map(\.name)).map { "Did you mean \"\($0)\"? " }
        throw Failure(
            "There is no account \"\(name)\".",
            advice: all.isEmpty
                ? "No account is signed in yet; `oort login SERVICE` adds one."
                : (near ?? "") + "The accounts are: \(all.map(\.name).joined(separator: ", "))."
        )
    }

    /// Adds an account, or replaces the one of its name.
    func put(_ account: RegisteredAccount) throws(Failure) {
        try change { all in
            all.removeAll { $0.name == account.name }
            all.append(account)
        }
    }

    /// Takes an account off the list.
    func remove(named name: String) throws(Failure) {
        try change { all in all.removeAll { $0.name == name } }
    }

    /// Reads, changes and writes the list while no other process does.
    private func change(_ body: (inout [RegisteredAccount]) -> Void) throws(Failure) {
        let descriptor = unsafe open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw Failure(
                "The lock \(lock) cannot be opened: \(POSIXText.ofErrno()).",
                advice: "Check the free space and the permissions of its folder."
            )
        }
        defer { close(descriptor) }
        // Whoever holds it writes one small file.
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
        var all = try accounts()
        body(&all)
        try write(all)
    }

    private func write(_ accounts: [RegisteredAccount]) throws(Failure) {
        do {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
            let data = try encoder.encode(accounts.sorted { $0.name < $1.name })
            try data.write(to: URL(filePath: path), options: .atomic)
            unsafe chmod(path, 0o600)
        } catch {
            throw Failure(
                "The list of accounts \(path) cannot be written: \(error.localizedDescription)",
                advice: "Check the free space and the permissions of its folder."
            )
        }
    }

    private static func words(_ error: any Error) -> String {
        error is DecodingError ? "it is not the JSON that Oort writes" : error.localizedDescription
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
