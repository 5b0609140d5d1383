import SwiftSFTP
import Testing

@testable import OortSFTP

/// What ssh asks is known by its words, and answered with the account's secret, once, or not at all.
@Suite("what ssh asks")
struct SSHAnswersTests {
    private static let unknownHost = """
        The authenticity of host '[nas]:2222 ([192.0.2.1]:2222)' can't be established.
        ED25519 key fingerprint is SHA256:u4dhCRZJ31TqKbDdjpBkxDBZbZDuyGpvwwUXE8cNFzg.
        This key is not known by any other names.
        Are you sure you want to continue connecting (yes/no/[fingerprint])?\u{20}
        """

    @Test(
        "questions are known by their words",
        arguments: [
            ("ada@nas's password: ", .password),
            ("(ada@nas) Password: ", .server("Password:")),
            ("(ada@nas) Welcome.\nToken\u{301} code:\n\n", .server("Token\u{301} code:")),
            // A server's words cannot pass for ssh's own.
            (
                "(ada@nas) Enter passphrase for key '/k': ",
                .server("Enter passphrase for key '/k':")
            ),
            (
                "(ada@nas) Continue (yes/no/[fingerprint])? ",
                .server("Continue (yes/no/[fingerprint])?")
            ),
            ("(ada@nas) x's password: ", .server("x's password:")),
            (
                "Enter passphrase for key '/home/a d'a/.ssh/key': ",
                .passphrase(file: "/home/a d'a/.ssh/key")
            ),
            (
                unknownHost,
                .hostKey(fingerprint: "SHA256:u4dhCRZJ31TqKbDdjpBkxDBZbZDuyGpvwwUXE8cNFzg")
            ),
            ("Accept updated hostkeys? (yes/no): ", .hostKey(fingerprint: nil)),
            ("Enter ada@nas's old password: ", .other("Enter ada@nas's old password:")),
            ("Enter PIN for ED25519-SK key /k: ", .other("Enter PIN for ED25519-SK key /k:")),
            ("", .other("")),
        ] as [(String, SSHQuestion)]
    )
    func words(_ words: String, _ question: SSHQuestion) {
        #expect(SSHQuestion(words) == question)
    }

    @Test(
        "a login counts as refused only where the server refused it",
        arguments: [
            ("ada@nas: Permission denied (publickey,password).", .refused),
            (
                "Received disconnect from 192.0.2.1 port 22:2: Too many authentication failures",
                .refused
            ),
            // What a network or this machine does not allow, and what a login's shell says.
            ("ssh: connect to host nas port 22: Permission denied", .unreachable),
            ("/etc/profile: line 3: /var/log/logins: Permission denied", .unreachable),
            ("Host key verification failed.", .unknownHost),
            ("kex_exchange_identification: Connection closed by remote host", .unreachable),
        ] as [(String, SSHFailure.Reason)]
    )
    func reasons(_ words: String, _ reason: SSHFailure.Reason) throws {
        let address = try #require(SFTPAddress("ada@nas"))
        let ended = SFTPError(.connectionLost(mayHaveBeenDone: true), detail: "it ended")
        #expect(SSHWords.failure(words, of: address, ended).reason == reason)
    }

    private func answers(_ secret: SFTPAddress.SecretKind, identity: String? = nil) throws
        -> SSHAnswers
    {
        var address = try #require(SFTPAddress("ada@nas"))
        address.secret = secret
        address.identity = identity
        return SSHAnswers(address)
    }

    @Test(
        "a password is given once, to the server alone",
        arguments: [SSHQuestion.password, .server("Password for ada:")]
    )
    func password(_ question: SSHQuestion) throws {
        var answers = try answers(.password)
        #expect(
            answers.answer(to: .hostKey(fingerprint: "SHA256:x"), isOnTheWay: false) == .nothing
        )
        #expect(answers.unknownKey == "SHA256:x")
        #expect(answers.answer(to: .passphrase(file: "/k"), isOnTheWay: false) == .nothing)
        #expect(!answers.isGiven && answers.obstacle == nil)
        #expect(answers.answer(to: question, isOnTheWay: false) == .secret)
        #expect(answers.isGiven)
        #expect(answers.answer(to: question, isOnTheWay: false) == .end)
        #expect(answers.obstacle == .askedAgain)
    }

    @Test(
        "nothing is said to a host on the way",
        arguments: [SSHQuestion.password, .server("Password:"), .other("Enter PIN")]
    )
    func onTheWay(_ question: SSHQuestion) throws {
        var answers = try answers(.password)
        #expect(answers.answer(to: .hostKey(fingerprint: nil), isOnTheWay: true) == .nothing)
        #expect(answers.isUnknownOnTheWay)
        #expect(answers.answer(to: question, isOnTheWay: true) == .end)
        #expect(answers.obstacle == .onTheWay)
        #expect(!answers.isGiven)
    }

    @Test("what asks for something else is told nothing, not even an empty answer")
    func somethingElse() throws {
        for (question, words) in [
            (SSHQuestion.server("Verification code:"), "Verification code:"),
            (.other("Enter ada@nas's old password:"), "Enter ada@nas's old password:"),
        ] {
            var answers = try answers(.password)
            #expect(answers.answer(to: question, isOnTheWay: false) == .end)
            #expect(answers.obstacle == .asked(words))
        }
        // After the password, too: a second factor.
        var answers = try answers(.password)
        #expect(answers.answer(to: .server("Password:"), isOnTheWay: false) == .secret)
        #expect(answers.answer(to: .server("Code:"), isOnTheWay: false) == .end)
        #expect(answers.obstacle == .asked("Code:"))
    }

    @Test("a passphrase is given for its own key, and to no server")
    func passphrase() throws {
        // ssh shows the first 100 bytes.
        let long = "/home/ada/" + String(repeating: "k", count: 120)
        for identity in ["/home/ada/key", long] {
            var answers = try answers(.passphrase, identity: identity)
            let shown = SSHQuestion.passphrase(file: String(identity.prefix(100)))
            #expect(answers.answer(to: .passphrase(file: "/other"), isOnTheWay: false) == .nothing)
            #expect(answers.answer(to: shown, isOnTheWay: true) == .nothing)
            #expect(answers.answer(to: shown, isOnTheWay: false) == .secret)
            #expect(answers.answer(to: shown, isOnTheWay: false) == .nothing)
            #expect(answers.answer(to: .password, isOnTheWay: false) == .end)
            #expect(answers.obstacle == .asksForPassword)
        }
        for question in [SSHQuestion.password, .server("Password:")] {
            var answers = try answers(.passphrase, identity: "/k")
            #expect(answers.answer(to: question, isOnTheWay: false) == .end)
            #expect(answers.obstacle == .asksForPassword && !answers.isGiven)
        }
    }
}
