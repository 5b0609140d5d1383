import Foundation
import OortFTP
import OortModel
import OortS3
import OortSFTP
import OortWeather
import OortWebDAV

/// What is known of an account, to sign in to it again.
extension SignInForm.Filled {
    /// What a person would fill in for an account that there is; nothing secret is known of it.
    init(of account: RegisteredAccount) {
        service = account.service
        isAgain = true
        values = ["name": account.name]
        guard let text = account.address else { return }
        let data = Data(text.utf8)
        switch account.service {
        case "nextcloud", "webdav": takeDAV(data)
        case "sftp": takeSFTP(data)
        case "ftp": takeFTP(data)
        case "s3": takeS3(data)
        case "weather":
            let known = try? JSONDecoder().decode(WeatherAccount.self, from: data)
            values["source"] = known?.source.rawValue
            values["contact"] = known?.contact
        default: break
        }
    }

    private mutating func takeDAV(_ data: Data) {
        guard let known = try? JSONDecoder().decode(WebDAVDiscovery.Account.self, from: data)
        else { return }
        let address = known.address
        if known.dialect == .plain {
            values["address"] = address.text
        } else {
            let base = PercentCoding.encodedPath(address.base.joined(separator: "/"))
            values["address"] = address.origin + "/" + base
            values["root"] = Self.path(address.folder)
            if address.space?.isPersonal == false { values["space"] = address.space?.name }
        }
        if service == "webdav" {
            values["dialect"] = known.dialect.rawValue
            values["user"] = address.user
        }
    }

    private mutating func takeSFTP(_ data: Data) {
        guard let known = try? JSONDecoder().decode(SFTPAddress.self, from: data) else { return }
        values["address"] = Self.server(known.user, known.host, known.port)
        values["root"] = known.folder
        values["identity"] = known.identity
        if !known.options.isEmpty { values["options"] = known.options.joined(separator: "\n") }
    }

    private mutating func takeFTP(_ data: Data) {
        guard let known = try? JSONDecoder().decode(FTPAccount.self, from: data) else { return }
        let address = known.address
        values["address"] =
            (address.security == .implicit ? "ftps://" : "")
            + Self.server(address.user, address.host, address.port)
        values["root"] = address.folder
        if address.security == .plain { values["plain"] = "1" }
    }

    private mutating func takeS3(_ data: Data) {
        guard let known = try? JSONDecoder().decode(S3Bucket.self, from: data) else { return }
        let place = known.account.place
        values["bucket"] = place.prefix.isEmpty ? place.bucket : "\(place.bucket)/\(place.prefix)"
        values["endpoint"] = place.endpoint
        values["region"] = place.region
        if place.isPathStyle { values["path_style"] = "1" }
        values["profile"] = known.profile
    }

    private static func server(_ user: String?, _ host: String, _ port: Int?) -> String {
        (user.map { "\($0)@" } ?? "") + (host.contains(":") ? "[\(host)]" : host)
            + (port.map { ":\($0)" } ?? "")
    }

    private static func path(_ names: [String]) -> String? {
        names.isEmpty ? nil : "/" + names.joined(separator: "/")
    }
}
