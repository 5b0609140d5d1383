import OortSignIn
import Testing

@Suite("secrets")
struct SecretTests {
    @Test("no way of printing a secret shows it")
    func printing() {
        let client = OAuthClient(id: "public", secret: Secret("hush"))
        let tokens = Tokens(accessToken: Secret("hush"), refreshToken: Secret("hush"))
        let credentials = Credentials(client: client, tokens: tokens)
        var dumped = ""
        dump(credentials, to: &dumped)
        for text in ["\(credentials)", String(reflecting: credentials), dumped] {
            #expect(!text.contains("hush"))
            #expect(text.contains("<secret>"))
        }
    }
}
