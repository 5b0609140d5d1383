import Foundation

/// The first page: accounts, sign-ins, room, and what is on its way.
extension Site {
    func overview(_ visit: Visit) async throws(Failure) -> HTML {
        let body: HTML = """
            <div id="live" data-source="/live">\(try await live(visit))</div>
            <noscript><p>Load this page anew to see how it goes on.</p></noscript>
            """
        return page("Overview", current: "/", visit, body)
    }

    /// The part of it that changes by itself.
    func live(_ visit: Visit) async throws(Failure) -> HTML {
        let report = try await client.status()
        let accounts = report.accounts.map { account($0, report, visit) }
        let none: HTML = """
            <p>No account is signed in. <a href="/accounts">Add one</a>, or, in a terminal, by one of \
            these:</p>
            <pre tabindex="0" role="region" aria-label="Commands">\(HTML.lines(Self.logins))</pre>
            """
        return """
            \(mount(report))
            \(accounts.isEmpty ? none : "<div class=\"accounts\">\(accounts)</div>")
            """
    }

    private func mount(_ report: StatusReport) -> HTML {
        guard let mount = report.mount else { return "<p>Not mounted.</p>" }
        let limits = StatusText.limits(up: mount.uploadLimit, down: mount.downloadLimit)
        var aside = (mount.foldersAside ?? []).map { folder -> HTML in
            "<p class=\"warning\">What was not uploaded when the catalog was lost: \(folder)</p>"
        }
        if let folder = mount.foundBeneath {
            aside.append(
                "<p class=\"warning\">Programs wrote here before it was mounted: \(folder)</p>"
            )
        }
        if let words = StatusText.keptAboveLimit(mount) {
            aside.append("<p class=\"warning\">\(words)</p>")
        }
        return """
            <section aria-label="The mount"><p>Mounted at <code>\(mount.mountPoint)</code>.</p>
            <p><label>Copies on this machine: \(size(mount.cachedBytes)) of \(size(mount.cacheLimit)) \
            \(meter(mount.cachedBytes, of: mount.cacheLimit))</label></p>\
            \(limits.map { "<p>\($0)</p>" as HTML })\
            \(mount.trouble.map { "<p class=\"warning\">\($0)</p>" as HTML })\(aside)</section>
            """
    }

    private func account(
        _ account: AccountStatus,
        _ report: StatusReport,
        _ visit: Visit
    ) -> HTML {
        let place = "/files/" + PercentCoding.encoded(account.name.utf8)
        let needsPerson = account.state == .trouble || account.state == .attention
        var state = account.state.rawValue
        if let until = account.pausedUntil { state += " until \(StatusText.moment(until))" }
        return """
            <article class="card"><h2><a href="\(place)">\(account.name)</a></h2>
            <p><span class="badge\(needsPerson ? " warn" : "")">\(state)</span>\
            \(account.isReadOnly == true ? " <span class=\"badge\">read-only</span>" : "")</p>
            <dl><dt>Service</dt><dd>\(Services.named(account.service)?.title ?? account.service)</dd>\
            \(account.person.map { "<dt>Signed in as</dt><dd>\($0)</dd>" as HTML })\
            \(room(account))\(known(account))</dl>\
            \(account.trouble.map { "<p class=\"warning\">\($0)</p>" as HTML })\
            \(signIn(account))\
            \(going(account, report))\(transfers(account, report))\(waiting(account, report))\
            \(keeping(account))\(heldBack(account))\(conflictCount(account))\
            \(pauseButton(account, visit))</article>
            """
    }

    /// The way to sign in again, and the command that does it, alone, for copying.
    private func signIn(_ account: AccountStatus) -> HTML? {
        account.signIn.map { command in
            """
            <p><a class="button" href="\(Self.address("/sign-in", account.name))">Sign in again</a></p>
            <p>Or in a terminal of this machine:</p><pre tabindex="0" role="region" \
            aria-label="Command that signs in to \(account.name)">\(HTML.lines(command))</pre>
            """
        }
    }

    /// What a person who has no account may type.
    private static let logins = """
        oort login dropbox       (also: drive, onedrive, box)
        oort login nextcloud URL
        oort help login          (WebDAV, SFTP, FTP, S3 and the weather)
        """

    private func room(_ account: AccountStatus) -> HTML? {
        guard let used = account.usedBytes else { return nil }
        guard let total = account.totalBytes, total > 0 else {
            return "<dt>In use</dt><dd>\(size(used))</dd>"
        }
        return """
            <dt>Room</dt><dd><label>\(size(used)) of \(size(total)) in use \
            \(meter(used, of: total))</label></dd>
            """
    }

    private func known(_ account: AccountStatus) -> HTML? {
        account.knownItems.map {
            "<dt>Read so far</dt><dd>\(StatusText.number(Int($0))) items</dd>"
        }
    }

    private func heldBack(_ account: AccountStatus) -> HTML? {
        account.staysHere.map { count in
            let words = count == 1 ? "1 item stays" : "\(StatusText.number(count)) items stay"
            return """
                <p>\(words) on this machine by your rules (<a href="/settings">ignore</a>) or the \
                service's.</p>
                """
        }
    }

    private func going(_ account: AccountStatus, _ report: StatusReport) -> HTML? {
        let count = account.pendingCount - (account.refusedCount ?? 0)
        let isGoing = account.transfers.contains(where: \.isUpload)
        guard account.state != .notMounted, count > 0 || isGoing else { return nil }
        let words = StatusText.progress(
            count: count,
            bytes: account.pendingBytes,
            bytesPerSecond: account.uploadBytesPerSecond,
            secondsLeft: account.secondsLeft
        )
        return "<p>Up: \(words)</p>"
    }

    private func transfers(_ account: AccountStatus, _ report: StatusReport) -> HTML? {
        guard !account.transfers.isEmpty else { return nil }
        let rows = account.transfers.prefix(Self.mostTransfers).map { transfer -> HTML in
            let done = min(max(transfer.doneBytes, 0), transfer.totalBytes)
            return """
                <li><label>\(transfer.isUpload ? "Up" : "Down"): \(name(transfer.path, report)) \
                <progress max="\(max(transfer.totalBytes, 1))" value="\(done)"></progress> \
                \(size(done)) of \(size(transfer.totalBytes))</label></li>
                """
        }
        let rest = account.transfers.count - Self.mostTransfers
        let more: HTML = "<li>and \(rest) more</li>"
        return """
            <h3>Transfers</h3><ul class="transfers">\(rows)\(rest > 0 ? more : "")</ul>
            """
    }

    private func waiting(_ account: AccountStatus, _ report: StatusReport) -> HTML? {
        let groups = (account.waiting ?? []).filter(\.needsWords)
        guard !groups.isEmpty else { return nil }
        let rows = groups.map { group -> HTML in
            let names = group.examples.map { example in
                name(example.path, report) + (example.detail.map { " (\($0))" } ?? "")
            }
            let reason = group.reason.map { "\($0); " } ?? ""
            return """
                <li\(group.needsPerson ? " class=\"warning\"" : "")>\(StatusText.changes(group.count)): \
                \(reason)\(group.next): \(names.joined(separator: ", "))</li>
                """
        }
        return "<h3>Not in the cloud yet</h3><ul>\(rows)</ul>"
    }

    private func keeping(_ account: AccountStatus) -> HTML? {
        guard let progress = account.keeping, !progress.isComplete else { return nil }
        return "<p><a href=\"/pins\">Kept here</a>: \(PinText.progress(progress))</p>"
    }

    private func conflictCount(_ account: AccountStatus) -> HTML? {
        let count = account.conflicts.count
        guard count > 0 else { return nil }
        let words = count == 1 ? "1 conflict" : "\(StatusText.number(count)) conflicts"
        return "<p class=\"warning\"><a href=\"/conflicts\">\(words)</a>, please look</p>"
    }

    private func pauseButton(_ account: AccountStatus, _ visit: Visit) -> HTML? {
        guard account.state != .notMounted else { return nil }
        let isPaused = account.state == .paused
        return button(
            isPaused ? "Go on sending" : "Pause sending",
            isPaused ? "/resume" : "/pause",
            visit,
            back: "/",
            label: "\(isPaused ? "Go on sending" : "Pause sending"): \(account.name)",
            fields: [("account", account.name)]
        )
    }

    /// The most transfers that are listed for each account.
    private static var mostTransfers: Int { 20 }

    /// A path below the mount point without that.
    private func name(_ path: String, _ report: StatusReport) -> String {
        guard let top = report.mount?.mountPoint, let path = SitePath(path, below: top) else {
            return path
        }
        return path.shown
    }

    /// How much of something is in use, for the eye; the words stand beside it.
    private func meter(_ value: Int64, of most: Int64) -> HTML {
        guard most > 0 else { return "" }
        return """
            <meter min="0" max="\(most)" high="\(most / 10 * 9)" value="\(min(max(value, 0), most))"></meter>
            """
    }

    /// Bytes in words.
    func size(_ bytes: Int64) -> String { "\(ByteSize(bytes: bytes))" }
}
