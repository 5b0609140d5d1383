import Foundation
import OortModel
public import OortTransport

/// What a person needs to sign in on another device.
public struct DevicePrompt: Hashable, Sendable {
    /// Where to go.
    public var url: String
    /// What to type there.
    public var userCode: String
    /// Where to go without typing, for a QR code; nil where the service gives none.
    public var completeURL: String?
    /// How long the code works.
    public var validity: Duration
}

extension SignIn {
    /// Signs in with a code typed on another device (RFC 8628).
    ///
    /// - Throws: `.unsupported` where the service has no such way; `.denied`, `.timedOut` when the
    ///   code was not used in time, `.refused`, `.transport`.
    public func withDevice(
        time: Timekeeper = .continuous,
        show: (DevicePrompt) async -> Void
    ) async throws(SignInError) -> Tokens {
        let device = try await requestDeviceCode()
        let end = time.now + device.prompt.validity
        await show(device.prompt)
        var interval = device.interval
        while time.now + interval < end {
            do throws(TransportError) { try await time.sleep(interval) } catch {
                throw .transport(error)
            }
            do throws(SignInError) {
                return try await requestTokens(device.fields, repetition: .harmless)
            } catch {
                interval = try nextInterval(after: error, interval)
            }
        }
        throw .timedOut
    }

    /// How long to wait after a poll without tokens; throws what ends the polling.
    private func nextInterval(
        after error: SignInError,
        _ interval: Duration
    ) throws(SignInError) -> Duration {
        switch error {
        case .refused(let refusal):
            switch refusal.code {
            case "authorization_pending": return interval
            case "slow_down": return interval + .seconds(5)
            case "access_denied", "authorization_declined": throw .denied
            case "expired_token": throw .timedOut
            default: throw error
            }
        case .transport(.unreachable), .transport(.broken):
            // RFC 8628, section 3.5: double the interval upon a connection timeout.
            return min(interval * 2, .seconds(60))
        default:
            throw error
        }
    }

    private struct Device {
        var prompt: DevicePrompt
        var interval: Duration
        var fields: FormFields
    }

    private struct DeviceAnswer: Decodable {
        var device_code: String
        var user_code: String
        var verification_uri: String?
        /// Google's name of the same.
        var verification_url: String?
        var verification_uri_complete: String?
        var expires_in: Seconds
        var interval: Seconds?
    }

    private func requestDeviceCode() async throws(SignInError) -> Device {
        guard let url = service.deviceURL else {
            throw .unsupported("\(service.name) has no sign-in by device code")
        }
        var fields = FormFields([("client_id", client.id)])
        fields.add("scope", service.scopes.joined(separator: " "))
        let answer = try await post(fields, to: url, repetition: .harmless)
        guard (200..<300).contains(answer.head.status) else {
            throw OAuthRefusal.error(answer, to: fields)
        }
        guard let wire = try? JSONDecoder().decode(DeviceAnswer.self, from: Data(answer.body)),
            let page = wire.verification_uri ?? wire.verification_url
        else { throw .malformedAnswer("the device answer lacks a code or a place to type it") }
        var polling = FormFields([
            ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
            ("device_code", wire.device_code),
        ])
        addClient(to: &polling)
        return Device(
            prompt: DevicePrompt(
                url: page,
                userCode: wire.user_code,
                completeURL: wire.verification_uri_complete,
                validity: .seconds(wire.expires_in.seconds)
            ),
            interval: .seconds(max(1, wire.interval?.seconds ?? 5)),
            fields: polling
        )
    }
}
