import Foundation
import OortSignIn

/// How a person registers Oort at a service that only lets in programs that are registered there.
struct RegistrationGuide: Sendable {
    /// One page, and what to do there.
    struct Step: Hashable, Sendable {
        /// The page's address; nil for one that a click on the last page leads to.
        var page: String?
        /// What to click and to fill in, a line each.
        var lines: [String]

        init(_ page: String? = nil, _ lines: String...) {
            self.page = page
            self.lines = lines
        }
    }

    /// The meaning of a refusal, recognised by a code or words of the service's.
    struct Refusal: Hashable, Sendable {
        /// A part of the code or words.
        var sign: String
        /// What to do.
        var advice: String
    }

    /// In order.
    let steps: [Step]
    /// What the service calls the client id.
    let idTitle: String
    /// Whether an id has the form that the service's have.
    let isID: @Sendable (String) -> Bool
    /// What an id looks like.
    let idForm: String
    /// What the service calls the secret; nil where it needs none.
    var secretTitle: String?
    /// What refusals mean.
    var refusals: [Refusal] = []
    /// What may be wrong where the browser showed an error and never came back.
    var browserErrors: [String] = []

    /// Why a text is no client id; nil where it has the form of one.
    func objection(to id: String) -> Failure? {
        isID(id) ? nil : Failure("That is no \(idTitle): \(idForm).")
    }

    /// What a service's refusal of a registration means, in words.
    func failure(_ refusal: OAuthRefusal, at service: CloudService) -> Failure {
        let words = [refusal.code, refusal.text].filter { !$0.isEmpty }
        return Failure(
            "\(service.title) does not know it: \(words.joined(separator: ", ")).",
            advice: advice(on: words.joined(separator: " "))
                ?? "Copy it once more, without spaces."
        )
    }

    /// That a service could not be asked.
    static func failure(_ error: SignInError, at service: CloudService) -> Failure {
        Failure(
            "\(service.title) cannot be asked: \(error).",
            advice: "Check the network, HTTPS_PROXY and ca_file in the settings, and try again."
        )
    }

    /// What to do about a refusal in the service's words; nil for one that is not known.
    func advice(on words: String) -> String? {
        refusals.first { words.localizedCaseInsensitiveContains($0.sign) }?.advice
    }
}

/// Leads a person on the terminal through a registration.
struct RegistrationDialog {
    private let service: CloudService
    private let guide: RegistrationGuide
    private let opensBrowser: Bool
    private let state: (OAuthClient) async throws(SignInError) -> RegistrationState

    /// How often a person may paste what the service does not know.
    private static let mostTries = 5

    /// `state` asks the service of a client.
    init(
        _ service: CloudService,
        _ guide: RegistrationGuide,
        opensBrowser: Bool,
        state: @escaping (OAuthClient) async throws(SignInError) -> RegistrationState
    ) {
        self.service = service
        self.guide = guide
        self.opensBrowser = opensBrowser
        self.state = state
    }

    /// Whether a person is there to be led.
    static var isPossible: Bool { isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 }

    /// The registration that the person made, known to the service.
    ///
    /// - Throws: `Failure` where the person ends it, or nothing that was pasted is known.
    func run() async throws(Failure) -> OAuthClient {
        Console.write(
            """
            \(service.title) only lets in programs that are registered there. You register Oort once, as
            your own: that is free, takes a few minutes, and nobody else can use it. Ctrl-C ends this;
            nothing is changed here before the end.
            """
        )
        for (number, step) in guide.steps.enumerated() {
            Console.write("\nStep \(number + 1) of \(guide.steps.count)")
            if let page = step.page {
                Console.write("  \(page)")
                if opensBrowser { Browser.open(page) }
            }
            Console.write(step.lines.map { "  - \($0)" }.joined(separator: "\n"))
            _ = try ask("Enter goes on: ")
        }
        for _ in 0..<Self.mostTries {
            if let client = try await client() { return client }
        }
        throw Failure(
            "\(service.title) knows nothing of what was pasted.",
            advice: "Begin again: oort login \(service.name)"
        )
    }

    /// What the person pastes; nil where it is not a registration that the service knows.
    private func client() async throws(Failure) -> OAuthClient? {
        let id = try ask("\n\(guide.idTitle): ")
        if let objection = guide.objection(to: id) {
            Console.write("\(objection)")
            return nil
        }
        var client = OAuthClient(id: id)
        if let title = guide.secretTitle {
            client = OAuthClient(
                id: id,
                secret: Secret(try SecretInput.read(nil, prompt: "\(title) (not shown): "))
            )
        }
        do throws(SignInError) {
            switch try await state(client) {
            case .known: Console.write("\(service.title) knows it.\n")
            case .unsaid: Console.write("")
            case .refused(let refusal):
                Console.write("\(guide.failure(refusal, at: service))")
                return nil
            }
        } catch {
            throw RegistrationGuide.failure(error, at: service)
        }
        return client
    }

    private func ask(_ words: String) throws(Failure) -> String {
        FileHandle.standardOutput.write(Data(words.utf8))
        guard let line = Console.readLine() else {
            throw Failure("The registration was not finished; nothing was changed.")
        }
        return line.trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
