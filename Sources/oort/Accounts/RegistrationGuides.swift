/// The pages of the four companies, as of the dates in `docs/providers`.
extension RegistrationGuide {
    /// Dropbox's App Console.
    static let dropbox = RegistrationGuide(
        steps: [
            Step(
                "https://www.dropbox.com/developers/apps",
                "Create app: Scoped access, Full Dropbox, any name."
            ),
            Step(
                nil,
                "Permissions: tick account_info.read, files.metadata.read, files.metadata.write,",
                "  files.content.read, files.content.write, sharing.read, sharing.write.",
                "Submit, at the bottom."
            ),
            Step(
                nil,
                "Settings, Redirect URIs: add each of these, exactly so:",
                "  http://localhost:53682/",
                "  http://localhost:53683/",
                "  http://localhost:53684/",
                "The App key on the same page is what you copy."
            ),
        ],
        idTitle: "App key",
        isID: { (8...40).contains($0.utf8.count) && $0.allSatisfy(\.isLowercaseASCIIOrDigit) },
        idForm: "about fifteen small letters and digits",
        refusals: [
            Refusal(
                sign: "redirect_uri",
                advice:
                    "Under Settings, Redirect URIs, add http://localhost:53682/ exactly so, with the "
                    + "slash at its end."
            ),
            Refusal(
                sign: "missing_scope",
                advice: "Tick all permissions that README.md names, Submit, and sign in again: a "
                    + "token has what was ticked when it was made."
            ),
            Refusal(
                sign: "invalid_client",
                advice: "It is the App key of the app's Settings page, not its secret."
            ),
        ],
        browserErrors: [
            "\"Invalid redirect_uri\": add http://localhost:53682/ under Settings, Redirect URIs."
        ]
    )

    /// Google's Cloud Console.
    static let drive = RegistrationGuide(
        steps: [
            Step(
                "https://console.cloud.google.com/projectcreate",
                "Create a project of any name, and choose it at the top of the page."
            ),
            Step(
                "https://console.cloud.google.com/apis/library/drive.googleapis.com",
                "Enable the Google Drive API."
            ),
            Step(
                "https://console.cloud.google.com/apis/credentials/consent",
                "Audience: External; a name, and your address twice.",
                "Add the scope https://www.googleapis.com/auth/drive.",
                "Test users: add your own address.",
                "While the project is in Testing, Google ends every sign-in after seven days;",
                "  Publish app avoids that. Google then warns of an unverified app, which is yours."
            ),
            Step(
                "https://console.cloud.google.com/apis/credentials",
                "Create credentials, OAuth client ID, type Desktop app.",
                "Copy the client id and the client secret that the page shows."
            ),
        ],
        idTitle: "Client id",
        isID: { $0.hasSuffix(".apps.googleusercontent.com") && !$0.contains(" ") },
        idForm: "it ends with .apps.googleusercontent.com",
        secretTitle: "Client secret",
        refusals: [
            Refusal(
                sign: "accessNotConfigured",
                advice:
                    "Enable the Google Drive API for the project of your registration, wait some minutes, and "
                    + "sign in again: https://console.cloud.google.com/apis/library/drive.googleapis.com"
            ),
            Refusal(
                sign: "redirect_uri_mismatch",
                advice: "The OAuth client must be of the type Desktop app; make another one."
            ),
            Refusal(
                sign: "invalid_client",
                advice:
                    "Copy client id and secret once more, of the same OAuth client, type Desktop app."
            ),
            Refusal(
                sign: "invalid_grant",
                advice:
                    "While the project is in Testing, Google ends every sign-in after seven days: Publish app "
                    + "on https://console.cloud.google.com/apis/credentials/consent, and sign in again."
            ),
        ],
        browserErrors: [
            "\"Access blocked\" or \"has not completed verification\": add your address under Test users,",
            "  or Publish app.",
            "\"redirect_uri_mismatch\": the OAuth client must be of the type Desktop app.",
        ]
    )

    /// Microsoft's Entra admin center.
    static let oneDrive = RegistrationGuide(
        steps: [
            Step(
                "https://entra.microsoft.com",
                "App registrations, New registration.",
                "Any name; supported accounts: any organization and personal Microsoft accounts.",
                "Redirect URI: Public client/native (mobile & desktop), http://localhost. Register."
            ),
            Step(
                nil,
                "Authentication: Allow public client flows: yes. Save."
            ),
            Step(
                nil,
                "API permissions, Microsoft Graph, delegated: Files.ReadWrite.All, User.Read,",
                "  offline_access.",
                "Overview: the Application (client) ID is what you copy."
            ),
        ],
        idTitle: "Application (client) ID",
        isID: { id in
            let parts = id.split(separator: "-", omittingEmptySubsequences: false)
            return parts.map(\.utf8.count) == [8, 4, 4, 4, 12]
                && parts.joined().allSatisfy(\.isHexDigit)
        },
        idForm: "five groups of digits and a to f, such as 00000000-0000-0000-0000-000000000000",
        refusals: [
            Refusal(
                sign: "AADSTS700016",
                advice:
                    "Copy the Application (client) ID of the Overview page, not the object or directory ID."
            ),
            Refusal(
                sign: "AADSTS50011",
                advice:
                    "Authentication: the platform must be Mobile and desktop applications, with the "
                    + "redirect URI http://localhost."
            ),
            Refusal(
                sign: "AADSTS7000218",
                advice: "Authentication: set Allow public client flows to yes."
            ),
        ],
        browserErrors: [
            "AADSTS50011: Authentication needs the redirect URI http://localhost of the platform",
            "  Mobile and desktop applications.",
            "AADSTS50020 or \"not enabled for consumers\": supported accounts must take in personal ones.",
        ]
    )
}

extension RegistrationGuide {
    /// Box's Developer Console.
    static let box = RegistrationGuide(
        steps: [
            Step(
                "https://app.box.com/developers/console",
                "Create Platform App: Custom App, any name, User Authentication (OAuth 2.0)."
            ),
            Step(
                nil,
                "Configuration, OAuth 2.0 Redirect URI: add exactly http://127.0.0.1/callback",
                "Application Scopes: Read and write all files and folders stored in Box.",
                "Save Changes.",
                "Copy the Client ID and the Client Secret that the page shows."
            ),
        ],
        idTitle: "Client ID",
        isID: { (16...64).contains($0.utf8.count) && $0.allSatisfy(\.isLowercaseASCIIOrDigit) },
        idForm: "some thirty small letters and digits",
        secretTitle: "Client Secret",
        refusals: [
            Refusal(
                sign: "redirect_uri",
                advice:
                    "Under Configuration, add the redirect URI http://127.0.0.1/callback exactly "
                    + "so; Box takes any port of it."
            ),
            Refusal(
                sign: "insufficient_scope",
                advice: "Under Configuration, tick \"Read and write all files and folders\", save, "
                    + "and sign in again."
            ),
            Refusal(
                sign: "invalid_client",
                advice: "Copy Client ID and Client Secret once more, of the same app."
            ),
        ],
        browserErrors: [
            "\"redirect_uri_mismatch\": add http://127.0.0.1/callback under Configuration."
        ]
    )
}

extension Character {
    fileprivate var isLowercaseASCIIOrDigit: Bool {
        isASCII && (isLowercase || isNumber)
    }
}
