import Foundation
import OortWeather

/// The choice of a source of the weather, for which no account is needed.
struct WeatherLogin {
    /// The source.
    var source: WeatherSourceName
    /// An e-mail or web address that goes with the requests.
    var contact: String?
    /// The account's name; nil finds one.
    var name: String?

    /// Makes the account; it is then on the list.
    ///
    /// - Throws: `Failure` in words for the person.
    func run(_ context: SignInContext) async throws {
        if let contact, contact.isEmpty || !contact.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        {
            throw Failure(
                "\"\(TerminalText.line(contact))\" is no address.",
                advice: "Write an e-mail or web address, without spaces."
            )
        }
        guard let service = Services.named("weather") else { return }
        let address = try JSONEncoder().encode(WeatherAccount(source: source, contact: contact))
        try await context.entry.add(
            nil,
            at: String(decoding: address, as: UTF8.self),
            service: service,
            name: name
        )
    }
}
