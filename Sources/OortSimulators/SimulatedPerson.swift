/// Who owns a simulated account.
public struct SimulatedPerson: Hashable, Sendable {
    /// The person's name.
    public let displayName: String
    /// The person's e-mail address.
    public let email: String
    /// A digit that distinguishes the services' keys of the account.
    let number: Int

    /// The owner of every account, unless another one is named.
    public static let ada = SimulatedPerson(
        displayName: "Ada Example",
        email: "ada@example.com",
        number: 0
    )
    /// Another person, whose account has another key at each service.
    public static let bob = SimulatedPerson(
        displayName: "Bob Example",
        email: "bob@example.com",
        number: 1
    )
}
