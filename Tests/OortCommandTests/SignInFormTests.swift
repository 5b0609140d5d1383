import Foundation
import OortSignIn
import Testing

@testable import OortSFTP
@testable import oort

@Suite("The forms of signing in on the page")
struct SignInFormTests {
    @Test("every service has a form, whose fields have names of their own and words")
    func forms() {
        for service in Services.all {
            for hasRegistration in [true, false] {
                let fields = SignInForm(service, hasRegistration: hasRegistration).fields
                #expect(Set(fields.map(\.name)).count == fields.count)
                #expect(fields.allSatisfy { !$0.label.isEmpty })
                // What is the form's own.
                let own: Set = ["token", "kind", "again", "back", "id"]
                #expect(own.isDisjoint(with: fields.map(\.name)))
                #expect(fields.filter(\.isRequired).allSatisfy { !$0.isRare })
            }
        }
    }

    @Test("what is secret is apart from what is sent back")
    func answers() throws {
        let service = try #require(Services.named("sftp"))
        let answers = SignInForm.Answers(
            [
                "address": "  ada@nas \r\n", "password": " a secret ", "options": "A=b\r\nC=d",
                "identity": "   ", "unknown": "x",
            ],
            of: SignInForm(service).fields
        )
        #expect(answers.shown == ["address": "ada@nas", "options": "A=b\nC=d"])
        #expect(answers.secret("password")?.revealed() == " a secret ")
        #expect(answers["password"] == nil)
        #expect(answers.repeatable == answers.shown)
        let again = ["name": " a b "]
        let fields = SignInForm(service).fields
        #expect(SignInForm.Answers(again, of: fields)["name"] == "a b")
        // That of an account that is there already is not another one.
        #expect(SignInForm.Answers(again, of: fields, isAgain: true)["name"] == " a b ")
        for (address, shown) in [
            ("ada:secret@nas:22/a", "ada@nas:22/a"), ("https://ada:a@b@nas", "https://ada@nas"),
            ("nas:22", "nas:22"), ("https://nas:8443/a", "https://nas:8443/a"),
        ] {
            let answers = SignInForm.Answers(["address": address], of: SignInForm(service).fields)
            #expect(answers["address"] == address)
            #expect(answers.repeatable == ["address": shown])
        }
    }

    @Test(
        "what is known of an account is what a person would fill in",
        arguments: [
            ("ada@nas:2222/home/ada", "ada@nas:2222", "/home/ada"),
            ("nas", "nas", nil), ("[::1]:22/~/files", "[::1]:22", "files"),
        ]
    )
    func known(server: String, address: String, root: String?) throws {
        var place = try #require(SFTPAddress(server))
        place.options = ["A=b", "C=d"]
        place.secret = .password
        let data = try JSONEncoder().encode(place)
        let filled = SignInForm.Filled(
            of: RegisteredAccount(
                name: "mine",
                service: "sftp",
                address: String(decoding: data, as: UTF8.self)
            )
        )
        #expect(filled.isAgain)
        var expected = ["name": "mine", "address": address, "options": "A=b\nC=d"]
        expected["root"] = root
        #expect(filled.values == expected)
        // Which leads there again.
        var again = try #require(SFTPAddress(filled.values["address"] ?? ""))
        if let root = filled.values["root"] { again.folder = root }
        #expect((again.host, again.port, again.folder) == (place.host, place.port, place.folder))
    }

    @Test("an account whose address cannot be read has its name alone")
    func unreadable() {
        for service in Services.all.map(\.name) {
            let filled = SignInForm.Filled(
                of: RegisteredAccount(name: "mine", service: service, address: "{\"host\":")
            )
            #expect(filled.values == ["name": "mine"])
        }
    }

    @Test(
        "a failure names the fields of the page in place of flags, and leaves commands as they are",
        arguments: [
            (
                "For a folder of the account: --root FOLDER",
                "For a folder of the account: the field “Begin at this folder”"
            ),
            (
                "Sign in with --user and --password-file.",
                "Sign in with the field “User” and the field “Password”."
            ),
            (
                "choose one with --name.", "choose one with the field “Name of the account”."
            ),
            ("oort login drive --name mine", "oort login drive --name mine"),
            ("Lines\n\nstay, --discard too", "Lines\n\nstay, --discard too"),
        ]
    )
    func words(terminal: String, page: String) {
        #expect(SitePerson.words(Failure(terminal)) == Failure(page))
        #expect(SitePerson.words(Failure("x", advice: terminal)) == Failure("x", advice: page))
    }
}

@Suite("The sign-ins of the page")
struct SiteSignInsTests {
    private static let form = SignInForm.Filled(service: "weather", values: [:], isAgain: false)

    /// A sign-in that stays until it is cancelled; of a form of its own.
    private static func waiting(_ signIns: SiteSignIns) throws -> String {
        var form = form
        form.values["name"] = UUID().uuidString
        return try signIns.begin(form) { _ in try await Task.sleep(for: .seconds(3600)) }
    }

    private static func ended(_ signIns: SiteSignIns, _ id: String) async throws -> SiteSignIns.Step
    {
        while true {
            let step = try #require(signIns.progress(id)).step
            if step.isEnd { return step }
            await Task.yield()
        }
    }

    @Test("a few may be under way, and one that is cancelled makes room")
    func bound() throws {
        let signIns = SiteSignIns()
        let ids = try (0..<SiteSignIns.most).map { _ in try Self.waiting(signIns) }
        #expect(throws: Failure.self) { try Self.waiting(signIns) }
        #expect(signIns.cancel(ids[0]))
        #expect(!signIns.cancel(ids[0]))
        let more = try Self.waiting(signIns)
        for id in ids + [more] { _ = signIns.cancel(id) }
        #expect(!signIns.all.contains { !$0.step.isEnd })
    }

    @Test("a form that is sent twice is one sign-in, until the person is asked something")
    func twice() async throws {
        let signIns = SiteSignIns()
        func begin() throws -> String {
            try signIns.begin(Self.form) { _ in try await Task.sleep(for: .seconds(3600)) }
        }
        let id = try begin()
        #expect(try begin() == id)
        #expect(signIns.all.count == 1)
        #expect(signIns.cancel(id))
        let later = try begin()
        #expect(later != id)
        #expect(signIns.cancel(later))
    }

    @Test("an answer is to the question that was shown, and to no later one")
    func question() async throws {
        let signIns = SiteSignIns()
        let id = try Self.waiting(signIns)
        func asked(after number: Int) async throws -> Int {
            while true {
                let progress = try #require(signIns.progress(id))
                if progress.number > number, case .hostKey = progress.step {
                    return progress.number
                }
                await Task.yield()
            }
        }
        async let first = signIns.ask(id, SSHHostKey(question: "the bastion", fingerprint: nil))
        let one = try await asked(after: -1)
        #expect(signIns.answer(id, to: one, isMeant: true))
        #expect(await first)
        async let second = signIns.ask(id, SSHHostKey(question: "the server", fingerprint: nil))
        let two = try await asked(after: one)
        #expect(!signIns.answer(id, to: one, isMeant: true))
        #expect(!signIns.answer(id, to: nil, isMeant: true))
        #expect(signIns.answer(id, to: two, isMeant: false))
        #expect(await !second)
        #expect(signIns.cancel(id))
    }

    @Test("what fails once the account is on the list is said beside it")
    func afterwards() async throws {
        let signIns = SiteSignIns()
        let account = RegisteredAccount(name: "a", service: "weather", identity: "a")
        let id = try signIns.begin(Self.form) { id in
            signIns.go(
                id,
                to: .done(NewAccount.Entered(account: account, service: "W", isMounted: false))
            )
            throw Failure("the mount ends")
        }
        guard case .done = try await Self.ended(signIns, id) else {
            Issue.record("it is not done")
            return
        }
        while signIns.progress(id)?.remarks.isEmpty == true { await Task.yield() }
        #expect(signIns.progress(id)?.remarks == ["the mount ends"])
    }

    @Test("of those that have ended the last are remembered")
    func memory() throws {
        let signIns = SiteSignIns()
        for _ in 0..<100 { _ = signIns.cancel(try Self.waiting(signIns)) }
        #expect(signIns.all.count < 12)
    }

    @Test("what is being put on the list cannot be cancelled")
    func entering() async throws {
        let signIns = SiteSignIns()
        let id = try Self.waiting(signIns)
        #expect(signIns.isReady(id))
        #expect(!signIns.cancel(id))
        let other = try Self.waiting(signIns)
        #expect(signIns.cancel(other))
        #expect(!signIns.isReady(other))
    }

    @Test("a sign-in that throws, or says nothing, has failed")
    func failing() async throws {
        let signIns = SiteSignIns()
        let thrown = try signIns.begin(Self.form) { _ in throw Failure("no") }
        guard case .failed(let failure) = try await Self.ended(signIns, thrown) else {
            Issue.record("it did not fail")
            return
        }
        #expect(failure == Failure("no"))
        let silent = try signIns.begin(Self.form) { _ in }
        guard case .failed = try await Self.ended(signIns, silent) else {
            Issue.record("it did not fail")
            return
        }
    }

    @Test("a sign-in that nobody finishes ends by itself")
    func limit() async throws {
        let signIns = SiteSignIns(timeLimit: .milliseconds(1))
        let id = try Self.waiting(signIns)
        guard case .failed(let failure) = try await Self.ended(signIns, id) else {
            Issue.record("it did not fail")
            return
        }
        #expect(failure.message.hasPrefix("Nobody finished"))
    }

    @Test("nothing is known of a sign-in that never was")
    func unknown() {
        let signIns = SiteSignIns()
        #expect(signIns.progress("x") == nil)
        #expect(!signIns.cancel("x"))
        #expect(!signIns.answer("x", to: 0, isMeant: true))
        #expect(!signIns.isReady("x"))
    }
}
