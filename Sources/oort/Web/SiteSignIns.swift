import OortSFTP
import OortSignIn
import Synchronization

/// The sign-ins on the page: those that are under way, and what became of the last ones.
///
/// It owns their tasks. No secret is in it but registrations that a person pasted, for the next sign-in.
final class SiteSignIns: Sendable {
    /// Where a sign-in is.
    enum Step: Sendable {
        /// The service is being asked.
        case working
        /// The person is to let Oort in, on the service's page.
        case consent(Consent)
        /// The person is to say whether a host is the one that is meant.
        case hostKey(SSHHostKey)
        /// The account is on the list.
        case done(NewAccount.Entered)
        /// It came to nothing.
        case failed(Failure)
        /// The person ended it.
        case cancelled

        /// Whether nothing follows.
        var isEnd: Bool {
            switch self {
            case .working, .consent, .hostKey: false
            case .done, .failed, .cancelled: true
            }
        }

        /// Whether the person has not been asked anything.
        var isBeginning: Bool {
            if case .working = self { true } else { false }
        }
    }

    /// One sign-in, as it is shown.
    struct Progress: Sendable {
        /// Its name in addresses of this page.
        let id: String
        /// What the person filled in, without the secrets.
        let form: SignInForm.Filled
        /// Where it is.
        var step = Step.working
        /// How often it went on; a page that shows another number is old.
        var number = 0
        /// What else the person should know.
        var remarks: [String] = []
    }

    private struct Entry {
        var progress: Progress
        var task: Task<Void, Never>?
        /// Who waits for the person's word on a host.
        var question: CheckedContinuation<Bool, Never>?
        /// Whether it is being put on the list, so that it cannot be cancelled any more.
        var isEntering = false

        /// Goes to a step, if it is not at an end.
        mutating func go(to step: Step) {
            guard !progress.step.isEnd else { return }
            progress.step = step
            progress.number += 1
        }
    }

    private struct State {
        /// In the order in which they began.
        var entries: [Entry] = []
        /// Registrations by the service's name.
        var registrations: [String: OAuthClient] = [:]
    }

    private let state = Mutex(State())

    /// The most sign-ins that are under way at once.
    static let most = 3
    /// How many are remembered that have ended.
    private static let mostEnded = 8
    /// How long one may take in all.
    private let timeLimit: Duration

    init(timeLimit: Duration = .seconds(25 * 60)) { self.timeLimit = timeLimit }

    /// Begins a sign-in, and returns its id.
    ///
    /// - Throws: `Failure` where too many are under way.
    func begin(
        _ form: SignInForm.Filled,
        _ signIn: @escaping @Sendable (_ id: String) async throws -> Void
    ) throws(Failure) -> String {
        let id = String(UInt64.random(in: .min ... .max), radix: 36)
        var same: String?
        let isTaken = state.withLock { state in
            // A form that is sent twice, by a double click, is one sign-in: servers count wrong passwords.
            // Once a person is led to a service's page, the same form is another account.
            same =
                state.entries.map(\.progress)
                .first { $0.step.isBeginning && $0.form == form }?.id
            guard same == nil else { return true }
            guard state.entries.count(where: { !$0.progress.step.isEnd }) < Self.most else {
                return false
            }
            let ended = state.entries.indices.filter { state.entries[$0].progress.step.isEnd }
            if ended.count >= Self.mostEnded { state.entries.remove(at: ended[0]) }
            state.entries.append(Entry(progress: Progress(id: id, form: form)))
            return true
        }
        guard isTaken else {
            throw Failure(
                "\(Self.most) sign-ins are under way already.",
                advice: "Go on with one of them, or cancel it: they are listed under Accounts."
            )
        }
        if let same { return same }
        let task = Task { [self] in
            let alarm = Task {
                guard (try? await Task.sleep(for: timeLimit)) != nil else { return }
                let words = "Nobody finished the sign-in: it was ended."
                end(id, .failed(Failure(words)), isFromOutside: true)
            }
            do { try await signIn(id) } catch {
                let failure = error as? Failure ?? Failure("\(error)")
                // The account may be on the list by then.
                if !end(id, .failed(failure)), case .done = progress(id)?.step {
                    remark(id, failure.message)
                }
            }
            alarm.cancel()
            finish(id)
        }
        change(id) { $0.task = task }
        return id
    }

    /// All of them, the latest first.
    var all: [Progress] { state.withLock { $0.entries.reversed().map(\.progress) } }

    /// One of them; nil where it is not known any more.
    func progress(_ id: String) -> Progress? {
        state.withLock { $0.entries.first { $0.progress.id == id }?.progress }
    }

    private func change(_ id: String, _ body: (inout Entry) -> Void) {
        state.withLock { state in
            guard let index = state.entries.firstIndex(where: { $0.progress.id == id }) else {
                return
            }
            body(&state.entries[index])
        }
    }

    // MARK: What the sign-in says

    /// Goes to a step.
    func go(_ id: String, to step: Step) { change(id) { $0.go(to: step) } }

    /// Notes what the person should know.
    func remark(_ id: String, _ words: String) {
        change(id) { entry in
            entry.progress.remarks.append(words)
            entry.progress.number += 1
        }
    }

    /// Whether the account may be put on the list; from then on nobody can cancel it.
    func isReady(_ id: String) -> Bool {
        var isReady = false
        change(id) { entry in
            isReady = !entry.progress.step.isEnd
            entry.isEntering = isReady
        }
        return isReady
    }

    /// Asks the person whether a host is the one that is meant.
    func ask(_ id: String, _ key: SSHHostKey) async -> Bool {
        let answer = await withCheckedContinuation { continuation in
            var isAsked = false
            change(id) { entry in
                guard !entry.progress.step.isEnd, entry.question == nil else { return }
                entry.question = continuation
                entry.go(to: .hostKey(key))
                isAsked = true
            }
            if !isAsked { continuation.resume(returning: false) }
        }
        go(id, to: .working)
        return answer
    }

    /// Ends a sign-in, if it is not at its end; says whether it did.
    ///
    /// From outside one is not ended of which something is being kept.
    @discardableResult
    private func end(_ id: String, _ step: Step, isFromOutside: Bool = false) -> Bool {
        var entry: Entry?
        change(id) { one in
            guard !one.progress.step.isEnd, !(isFromOutside && one.isEntering) else { return }
            entry = one
            one.go(to: step)
            one.question = nil
        }
        entry?.question?.resume(returning: false)
        entry?.task?.cancel()
        return entry != nil
    }

    /// Lets go of a task that has ended.
    private func finish(_ id: String) {
        // A sign-in that says neither is none.
        end(id, .failed(Failure("The sign-in ended without an account.")))
        change(id) { $0.task = nil }
    }

    // MARK: What the person says

    /// Cancels a sign-in; says whether that was possible still.
    func cancel(_ id: String) -> Bool { end(id, .cancelled, isFromOutside: true) }

    /// Says whether the host is the one that is meant; false where the question of this number is not what
    /// is asked now: `ssh` may ask about several hosts.
    func answer(_ id: String, to number: Int?, isMeant: Bool) -> Bool {
        var question: CheckedContinuation<Bool, Never>?
        change(id) { entry in
            guard entry.progress.number == number else { return }
            question = entry.question
            entry.question = nil
        }
        question?.resume(returning: isMeant)
        return question != nil
    }

    // MARK: Registrations

    /// The registration at a service that a person pasted last and the service knows.
    func registration(at service: String) -> OAuthClient? {
        state.withLock { $0.registrations[service] }
    }

    /// Remembers a registration until the page ends.
    func remember(_ client: OAuthClient, at service: String) {
        state.withLock { $0.registrations[service] = client }
    }
}
