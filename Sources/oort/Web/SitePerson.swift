import OortSFTP
import OortSignIn

/// Who signs in on the page: all that can be given was given in the form.
struct SitePerson: SignInPerson {
    /// The sign-ins of the page.
    let signIns: SiteSignIns
    /// Which of them is the person's.
    let id: String
    /// The password or passphrase that was filled in.
    let password: Secret?

    var isAtTerminal: Bool { false }

    var canBeAsked: Bool { false }

    func name(_ option: SignInOption) -> String { Self.field(option) }

    func again(_ arguments: String) -> String { "Try again." }

    func tell(_ words: String) { signIns.remark(id, words) }

    func warn(_ words: String) { signIns.remark(id, words) }

    func givenSecret() throws(Failure) -> String? {
        guard let password else { return nil }
        guard let text = SecretInput.password(in: password.revealed()) else {
            throw Failure("The password is more than one line.")
        }
        return text
    }

    func secret(_ prompt: String) throws(Failure) -> String {
        guard let secret = try givenSecret() else {
            throw Failure(
                "The password is not given.",
                advice: "Fill in \(name(.passwordFile))."
            )
        }
        return secret
    }

    func appToken(madeAt page: String, user: String?) throws(Failure) -> String? {
        guard password == nil || user == nil else { return user }
        throw Failure(
            "The server wants an app token, which you make on its page, under App Tokens: \(page)",
            advice: "Fill it in as the password, and name the user with whom you log in there."
        )
    }

    func lead(to consent: Consent) { signIns.go(id, to: .consent(consent)) }

    func introduce(_ connection: SSHConnection) async throws(SSHFailure) -> Bool {
        let (signIns, id) = (signIns, id)
        try await connection.introduce { key in await signIns.ask(id, key) }
        return true
    }

    func isReady() -> Bool { signIns.isReady(id) }

    func signedIn(_ account: NewAccount.Entered) { signIns.go(id, to: .done(account)) }

    /// What the page calls something that a person can give.
    private static func field(_ option: SignInOption) -> String {
        "the field “\(SignInForm.label(option))”"
    }

    /// The words of a failure, with fields of the page where they name flags of `oort login`; what is a command
    /// as a whole stays one.
    static func words(_ failure: Failure) -> Failure {
        Failure(
            withFields(failure.message),
            advice: failure.advice.map { withFields($0) }
        )
    }

    private static func withFields(_ text: String) -> String {
        text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            line.contains("oort log") ? String(line) : withFields(line: line)
        }.joined(separator: "\n")
    }

    private static func withFields(line: Substring) -> String {
        var result: [String] = []
        var isAfterFlag = false
        for word in line.split(separator: " ", omittingEmptySubsequences: false) {
            let end = word.lastIndex { !".,:;".contains($0) }.map { word.index(after: $0) }
            let core = word[..<(end ?? word.startIndex)]
            let marks = word[(end ?? word.startIndex)...]
            if let option = SignInOption(rawValue: String(core)) {
                result.append(field(option) + marks)
                isAfterFlag = marks.isEmpty
                continue
            }
            // What stands for a flag's value: `--root FOLDER`.
            let isValue = core.utf8.count > 1 && core.allSatisfy { $0.isASCII && $0.isUppercase }
            if isAfterFlag, isValue {
                result[result.count - 1] += marks
            } else {
                result.append(String(word))
            }
            isAfterFlag = false
        }
        return result.joined(separator: " ")
    }
}
