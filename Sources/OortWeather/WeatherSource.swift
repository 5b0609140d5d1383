import OortModel
import OortTransport

/// The source of the weather.
public enum WeatherSourceName: String, Codable, CaseIterable, Sendable {
    /// <https://open-meteo.com>: free for private use, the models of many weather services.
    case openMeteo = "open-meteo"
    /// <https://api.met.no>: the Norwegian weather service, for the whole world.
    case metNorway = "met-norway"

    /// For people.
    public var title: String { self == .openMeteo ? "Open-Meteo" : "MET Norway" }

    /// Whose data they are, as their licences (both CC BY 4.0) want it said.
    var credit: String {
        switch self {
        case .openMeteo: "Weather data by Open-Meteo.com (CC BY 4.0)"
        case .metNorway: "Weather data by MET Norway (CC BY 4.0)"
        }
    }
}

/// An account: whose weather it shows, and who is to be written to about its requests.
public struct WeatherAccount: Codable, Hashable, Sendable {
    /// The source of the weather.
    public var source: WeatherSourceName
    /// Where the source can write to the person about the requests; nil where the person does not say.
    public var contact: String?

    /// An account at a source.
    public init(source: WeatherSourceName, contact: String? = nil) {
        self.source = source
        self.contact = contact
    }
}

/// Where the services are.
public struct WeatherEndpoints: Sendable {
    /// Open-Meteo's forecasts.
    public var openMeteo: String
    /// Open-Meteo's search for places.
    public var geocoding: String
    /// MET Norway.
    public var metNorway: String

    /// Addresses without a slash at their ends.
    public init(openMeteo: String, geocoding: String, metNorway: String) {
        self.openMeteo = openMeteo
        self.geocoding = geocoding
        self.metNorway = metNorway
    }

    /// The services themselves.
    public static let live = WeatherEndpoints(
        openMeteo: "https://api.open-meteo.com",
        geocoding: "https://geocoding-api.open-meteo.com",
        metNorway: "https://api.met.no"
    )
}

/// What a service answered, as it is kept.
struct WeatherAnswer: Codable, Hashable, Sendable {
    /// Whose it is: another source's is not read.
    var source: WeatherSourceName
    /// When it came, in seconds since 1970.
    var fetched: Int64
    /// Until when the service is not to be asked again.
    var fresh: Int64
    /// `Last-Modified`, byte for byte.
    var lastModified: String?
    /// The body.
    var body: String
}

/// Asks the services; keeps nothing.
struct WeatherRequests: Sendable {
    let client: any HTTPClient
    let endpoints: WeatherEndpoints
    /// The program with its version, and whom to write to where the person says: MET Norway answers no
    /// program that does not name itself (<https://api.met.no/doc/TermsOfService>, "Identification").
    let userAgent: String

    /// A forecast answer is below 200 KiB.
    private static let longestAnswer = 4 << 20

    /// The shortest time for which an answer is kept, in seconds, whatever its service says.
    ///
    /// No model runs more often than once an hour, and a day of looking is to cost fewer calls than it
    /// has hours.
    static let shortestKeep: Int64 = 75 * 60
    /// The longest time, in seconds.
    static let longestKeep: Int64 = 12 * 3600

    /// The forecast of a place; nil where it is still `known`.
    ///
    /// - Returns: the answer to be kept, which can be read.
    func forecast(
        of place: WeatherPlace,
        from source: WeatherSourceName,
        known: WeatherAnswer?,
        now: Int64
    ) async throws(ProviderError) -> WeatherAnswer {
        let url: String
        var headers = [("User-Agent", userAgent)]
        switch source {
        case .openMeteo: url = endpoints.openMeteo + OpenMeteo.path(of: place)
        case .metNorway: url = endpoints.metNorway + MetNorway.path(of: place)
        }
        if let since = known?.lastModified { headers.append(("If-Modified-Since", since)) }
        let answer = try await ask(url, headers)
        let kept = Self.kept(until: answer.head, now: now)
        if answer.head.status == 304, var known {
            (known.fetched, known.fresh) = (now, kept)
            return known
        }
        guard answer.head.status == 200 || answer.head.status == 203 else {
            throw Self.failure(answer, source.title)
        }
        let new = WeatherAnswer(
            source: source,
            fetched: now,
            fresh: kept,
            lastModified: answer.head.header("Last-Modified"),
            body: String(decoding: answer.body, as: UTF8.self)
        )
        // What cannot be read does not take the place of what could be.
        _ = try Self.read(new, now: now)
        return new
    }

    /// A kept answer as a forecast.
    static func read(_ answer: WeatherAnswer, now: Int64) throws(ProviderError) -> Forecast {
        let bytes = Array(answer.body.utf8)
        return switch answer.source {
        case .openMeteo: try OpenMeteo.forecast(bytes, now: now)
        case .metNorway: try MetNorway.forecast(bytes, now: now)
        }
    }

    /// Places of a name, the likeliest first.
    func places(named name: String) async throws(ProviderError) -> [FoundPlace] {
        let url = endpoints.geocoding + OpenMeteo.searchPath(name)
        let answer = try await ask(url, [("User-Agent", userAgent)])
        guard answer.head.status == 200 else {
            throw Self.failure(answer, "Open-Meteo's search for places")
        }
        return try OpenMeteo.places(answer.body)
    }

    private func ask(
        _ url: String,
        _ headers: [(String, String)]
    ) async throws(ProviderError) -> HTTPResponse {
        let request = HTTPRequest(
            method: "GET",
            url: url,
            headers: headers.map { (name: $0.0, value: $0.1) },
            repetition: .harmless,
            isAuthorized: false,
            answerTimeout: .seconds(20)
        )
        do throws(TransportError) {
            return try await client.send(request, limit: Self.longestAnswer)
        } catch { throw ProviderError(error) }
    }

    /// Until when an answer is kept: as long as `Expires` or `Cache-Control` says, within bounds.
    static func kept(until head: HTTPResponseHead, now: Int64) -> Int64 {
        var until = now
        if let expires = head.expires {
            // By the server's own clock, since this machine's may be wrong.
            let base = head.date?.seconds ?? now
            let length = expires.seconds.subtractingReportingOverflow(base)
            if !length.overflow { until = now.addingSaturating(max(0, length.partialValue)) }
        }
        if let age = head.maximumAge { until = max(until, now.addingSaturating(age)) }
        return min(max(until, now + shortestKeep), now + longestKeep)
    }

    private static func failure(_ answer: HTTPResponse, _ service: String) -> ProviderError {
        let status = answer.head.status
        let reason = OpenMeteo.reason(answer.body).map { ": \($0)" } ?? ""
        let kind: ProviderError.Kind =
            switch status {
            case 429: .rateLimited(retryAfter: answer.head.retryAfter)
            case 403: .noPermission
            case 400...499: .badRequest
            default: .outcomeUnknown(retryAfter: answer.head.retryAfter)
            }
        return ProviderError(kind, detail: "\(service) answers \(status)\(reason)")
    }
}

extension HTTPResponseHead {
    /// `max-age` of `Cache-Control`, in seconds.
    fileprivate var maximumAge: Int64? {
        for part in (header("Cache-Control") ?? "").lowercased().parts(between: ",") {
            let text = part.filter { $0 != " " }
            if let number = text.dropping(beginning: "max-age=").flatMap({ Int64($0) }) {
                return max(0, number)
            }
        }
        return nil
    }
}
