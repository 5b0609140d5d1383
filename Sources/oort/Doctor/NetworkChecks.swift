import Foundation
import OortModel
import OortTransport

/// The way to the services: names, connections, the proxy, TLS, and what time it is there.
struct NetworkChecks {
    private let patient: Patient
    private let environment: [String: String]

    init(
        _ patient: Patient,
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) {
        self.patient = patient
        self.environment = environment
    }

    /// What asking each host of each service for anything at all shows.
    func look() async -> [Finding] {
        let wire: CurlClient
        do throws(Failure) {
            wire = try Wire.make(patient.settings, connectTimeout: .seconds(10))
        } catch {
            return [.trouble("tls", error)]
        }
        let answers = await withTaskGroup(of: Answer.self) { group in
            for (place, service) in patient.services().enumerated() {
                let hosts = Hosts(patient.settings.service(service.name).endpoints)
                for address in service.oauth?.addresses(hosts) ?? [] {
                    group.addTask { await Self.ask(address, of: service, place, by: wire) }
                }
            }
            var all: [Answer] = []
            for await answer in group { all.append(answer) }
            return all.sorted { ($0.place, $0.address) < ($1.place, $1.address) }
        }
        await wire.shutdown()
        return [proxy()] + reachable(answers) + [clock(answers)]
    }

    /// What came of asking one host.
    struct Answer: Sendable {
        /// The service's place among those that are asked.
        var place: Int
        var service: CloudService
        var address: String
        var error: TransportError?
        /// How far this machine's clock is ahead of the host's; nil where the host gave no time.
        var ahead: TimeInterval?
    }

    private static func ask(
        _ address: String,
        of service: CloudService,
        _ place: Int,
        by wire: CurlClient
    ) async -> Answer {
        var answer = Answer(place: place, service: service, address: address)
        let request = HTTPRequest(
            method: "GET",
            url: address,
            repetition: .harmless,
            isAuthorized: false,
            answerTimeout: .seconds(15)
        )
        let before = Date()
        do throws(TransportError) {
            // Whatever the status is, the host answers.
            let head = try await wire.send(request, limit: 4 << 20).head
            let middle = before.addingTimeInterval(Date().timeIntervalSince(before) / 2)
            answer.ahead = head.date.map { middle.timeIntervalSince($0.date) }
        } catch {
            answer.error = error
        }
        return answer
    }

    private func reachable(_ answers: [Answer]) -> [Finding] {
        var findings: [Finding] = []
        for place in Set(answers.map(\.place)).sorted() {
            let own = answers.filter { $0.place == place }
            guard let title = own.first?.service.title else { continue }
            let failures = Dictionary(grouping: own.filter { $0.error != nil }) { answer in
                if case .untrusted = answer.error { "tls" } else { "network" }
            }
            if failures.isEmpty { findings.append(.ok("network", "\(title) answers")) }
            for (_, failed) in failures.sorted(by: { $0.key < $1.key }) {
                guard let error = failed.first?.error else { continue }
                let hosts = failed.map(\.address).joined(separator: ", ")
                findings.append(Self.finding(title: title, hosts: hosts, error: error))
            }
        }
        return findings
    }

    private static func finding(title: String, hosts: String, error: TransportError) -> Finding {
        switch error {
        case .untrusted(let detail):
            .trouble(
                "tls",
                "\(title): the certificate of \(hosts) is not trusted: \(detail)",
                advice: "Check the clock. Where a proxy inspects TLS, name its authority's file as "
                    + "ca_file in the settings. Else somebody else answers for \(title)."
            )
        case .unreachable(let detail), .broken(let detail):
            .trouble(
                "network",
                "\(title) cannot be reached (\(hosts)): \(detail)",
                advice: "Check the network, and the proxy if there is one. What you write "
                    + "meanwhile is kept and goes out later."
            )
        default:
            .unknown("network", "\(title): no usable answer from \(hosts): \(error)")
        }
    }

    private func clock(_ answers: [Answer]) -> Finding {
        let times = answers.compactMap(\.ahead).sorted()
        guard !times.isEmpty else { return .unknown("clock", "no service gave the time") }
        let ahead = times[times.count / 2]
        guard abs(ahead) > Self.largestSkew else {
            return .ok("clock", "it agrees with the services' to the minute")
        }
        let much = Int(min(abs(ahead) / 60, 1e9).rounded())
        return .trouble(
            "clock",
            "this machine's clock is \(much) minutes \(ahead > 0 ? "ahead" : "behind")",
            advice: "Set it: timedatectl set-ntp true. With a wrong clock certificates and tokens "
                + "count as expired, and times of files are wrong."
        )
    }

    /// Seconds; tokens are refreshed as long before their end.
    private static let largestSkew = 120.0

    /// Which proxy the environment names (`man 3 libcurl-env`).
    func proxy() -> Finding {
        let names = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
        let named = names.first { environment[$0]?.isEmpty == false }
        guard let name = named, let value = environment[name] else {
            return .ok("proxy", "none is set")
        }
        let shown = Self.withoutPassword(value)
        let exceptions = environment["no_proxy"] ?? environment["NO_PROXY"] ?? ""
        return .ok(
            "proxy",
            "\(name) is \(shown)" + (exceptions.isEmpty ? "" : ", but for \(exceptions)")
        )
    }

    /// An address without the user and the password in it.
    static func withoutPassword(_ address: String) -> String {
        let scheme = address.range(of: "://").map { address[..<$0.upperBound] } ?? ""
        let rest = address.dropFirst(scheme.count)
        guard let at = rest.lastIndex(of: "@") else { return address }
        return String(scheme + rest[rest.index(after: at)...])
    }
}
