import Foundation

/// What the page changes, each by a form of its own.
extension Site {
    func act(_ place: String, _ visit: Visit) async throws(Failure) -> SiteAnswer {
        guard visit.path == .root else { return .words("There is no form here.", status: 404) }
        let form = visit.form
        switch place {
        case "pause":
            _ = try await client.pause(PauseRequest(account: try named("account", form)))
            admission.tell("Nothing is sent until you go on.")
        case "resume":
            _ = try await client.resume(ResumeRequest(account: try named("account", form)))
            admission.tell("What waited goes out.")
        case "pin": try await pin(form)
        case "unpin":
            let path = try await path(form)
            try await client.unpin(path)
            admission.tell("\(path) is no longer kept here.")
        case "free":
            let wish =
                form["all"] == "1"
                ? FreeRequest(all: true) : FreeRequest(path: try await path(form))
            admission.tell(PinText.text(try await client.free(wish)))
        case "restore":
            // An id is no path; the mount asks for one beside it.
            let wish = RestoreRequest(target: try named("id", form), path: "/")
            admission.tell(TrashText.text(try await client.restore(wish)))
        case "restore-version": try await restoreVersion(form)
        case "read-version": return try await readVersion(form)
        case "resolve": try await resolve(form)
        case "sign-in": return try await beginSignIn(form)
        case "sign-in-cancel": return try cancelSignIn(form)
        case "sign-in-host": return try answerHost(form)
        case "sign-out": return try await endAccount(form)
        default: return .words("There is no form here.", status: 404)
        }
        return .see(Self.place(form["back"]))
    }

    /// A field that has to be there.
    func named(_ name: String, _ form: [String: String]) throws(Failure) -> String {
        guard let value = form[name], !value.isEmpty else {
            throw Failure("The form has no \(name): load its page anew.")
        }
        return value
    }

    /// The path that a form names, on this machine.
    private func path(_ form: [String: String]) async throws(Failure) -> String {
        guard let path = SitePath(encoded: try named("path", form)) else {
            throw Failure("The form names no path: load its page anew.")
        }
        return try path.absolute(below: await mountPoint())
    }

    private func pin(_ form: [String: String]) async throws(Failure) {
        let hours = form["hours"].flatMap { Int($0) }.map { min(max($0, 1), 24 * 366) }
        let path = try await path(form)
        let report = try await client.pin(
            PinRequest(
                path: path,
                until: hours.map { Date(timeIntervalSinceNow: Double($0) * 3600) }
            )
        )
        let end = report.until.map { "until \(StatusText.moment($0))" } ?? "until you end that"
        admission.tell("\(report.path) is kept here \(end): \(PinText.progress(report.progress)).")
    }

    private func restoreVersion(_ form: [String: String]) async throws(Failure) {
        let path = try await path(form)
        let wish = VersionsRequest(path: path, version: try named("version", form))
        let client = client
        // From before: what is saved while the version is on its way must not be lost.
        let before = try await BlockingWork.run { () throws(Failure) in FileIdentity(path) }
        if let content = try await client.restoreVersion(wish).content {
            try await VersionFile(content).replace(path, as: before) { () async throws(Failure) in
                try await client.checkUnchanged(VersionsRequest(path: path))
            }
        }
        admission.tell("\(path) has the content of that version again.")
    }

    /// A version as a file to save; nothing changes in the cloud.
    private func readVersion(_ form: [String: String]) async throws(Failure) -> SiteAnswer {
        let path = try await path(form)
        let content = try await client.readVersion(
            VersionsRequest(path: path, version: try named("version", form))
        )
        let file = try await BlockingWork.run { () throws(Failure) in
            let descriptor = Descriptor(unsafe open(content.file, O_RDONLY | O_CLOEXEC))
            // Its bytes stay until they are sent.
            _ = unsafe unlink(content.file)
            var status = stat()
            guard let descriptor, unsafe fstat(descriptor.number, &status) == 0 else {
                throw Failure(
                    "The version was fetched, and cannot be read: \(POSIXText.ofErrno())."
                )
            }
            return OpenedFile(descriptor, status: status)
        }
        let name = path.utf8.split(separator: UInt8(ascii: "/")).last.map(Array.init) ?? []
        var answer = SiteAnswer(
            fields: [
                ("Content-Type", "application/octet-stream"),
                (
                    "Content-Disposition",
                    "attachment; filename*=UTF-8''\(PercentCoding.encoded(name))"
                ),
            ],
            body: .file(file, 0..<file.size)
        )
        answer.policy = "sandbox; default-src 'none'; frame-ancestors 'none'"
        return answer
    }

    private func resolve(_ form: [String: String]) async throws(Failure) {
        let id = UInt64(try named("id", form))
        guard let keep = ResolveCommand.Choice(rawValue: try named("keep", form)) else {
            throw Failure("The form names no choice: load its page anew.")
        }
        guard let conflict = try await client.conflicts().first(where: { $0.id == id }) else {
            throw Failure("This conflict is over already.")
        }
        admission.tell(try await client.resolve(conflict, keeping: keep))
    }
}
