import CCurl

extension TransportError {
    /// What libcurl's code means; nil for success.
    ///
    /// `hasBegun` says whether the request had begun to go out: before that, nothing can have been done,
    /// whatever the code. See libcurl-errors(3).
    init?(_ code: CURLcode, hasBegun: Bool, detail: String) {
        // Its text would hold the URL, which may be pre-signed.
        let words = code == CURLE_URL_MALFORMAT ? "" : detail
        let text =
            unsafe "\(words.isEmpty ? String(cString: curl_easy_strerror(code)) : words) "
            + "(curl \(code.rawValue))"
        switch code {
        case CURLE_OK:
            return nil
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_PINNEDPUBKEYNOTMATCH,
            CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CACERT_BADFILE:
            self = .untrusted(text)
        case CURLE_SSL_CONNECT_ERROR where !hasBegun:
            self = .unreachable("\(text): what answers there may not be encrypted")
        default:
            self = hasBegun ? .broken(text) : .unreachable(text)
        }
    }
}
