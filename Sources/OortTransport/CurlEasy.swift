import CCurl
import Foundation

/// The one owner of a curl easy handle and of what it points to; used by one loop's thread only.
@safe final class CurlEasy {
    let pointer: UnsafeMutableRawPointer
    /// The handle's address, by which libcurl names a transfer.
    var key: UInt { unsafe UInt(bitPattern: pointer) }
    private let errorBuffer: UnsafeMutablePointer<CChar>
    private var headerList: UnsafeMutablePointer<curl_slist>?

    init?() {
        guard let pointer = unsafe curl_easy_init() else { return nil }
        unsafe self.pointer = pointer
        unsafe errorBuffer = .allocate(capacity: Int(CURL_ERROR_SIZE))
        unsafe errorBuffer.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    }

    deinit {
        unsafe curl_easy_cleanup(pointer)
        unsafe curl_slist_free_all(headerList)
        unsafe errorBuffer.deallocate()
    }

    /// libcurl's own words on what went wrong; may be empty.
    var errorText: String { unsafe String(cString: errorBuffer) }

    /// Forgets the last request; its connection stays with the loop.
    func reset() {
        unsafe curl_easy_reset(pointer)
        unsafe curl_slist_free_all(headerList)
        unsafe headerList = nil
        unsafe errorBuffer.pointee = 0
    }

    /// Sets everything for one request.
    ///
    /// The transfer must outlive its time in the loop.
    func prepare(_ transfer: CurlTransfer, settings: CurlClient.Settings) {
        let request = transfer.request
        unsafe set(CURLOPT_ERRORBUFFER, pointer: errorBuffer)
        set(CURLOPT_URL, request.url)
        set(CURLOPT_PATH_AS_IS, 1)
        set(CURLOPT_PROTOCOLS_STR, "http,https")
        set(CURLOPT_NOSIGNAL, 1)
        // Or a cancelled request would hold up all others until its name is resolved.
        set(CURLOPT_QUICK_EXIT, 1)
        set(CURLOPT_USERAGENT, settings.userAgent)
        set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        set(CURLOPT_CONNECTTIMEOUT_MS, max(1, Int(settings.connectTimeout / .milliseconds(1))))
        set(CURLOPT_TCP_KEEPALIVE, 1)
        set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        // libcurl with OpenSSL does not look at the variable by itself.
        if let file = settings.caFile ?? ProcessInfo.processInfo.environment["SSL_CERT_FILE"] {
            set(CURLOPT_CAINFO, file)
            set(CURLOPT_PROXY_CAINFO, file)
        }
        if settings.caFile != nil {
            // Or the system's authorities, which Debian's libcurl takes from a folder, stay trusted.
            unsafe set(CURLOPT_CAPATH, pointer: nil)
            unsafe set(CURLOPT_PROXY_CAPATH, pointer: nil)
        }
        if let proxy = settings.proxy { set(CURLOPT_PROXY, proxy) }
        if transfer.usesHTTP2 {
            set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS)
            set(CURLOPT_PIPEWAIT, 1)
        } else {
            set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1)
            set(CURLOPT_BUFFERSIZE, 256 << 10)
            set(CURLOPT_UPLOAD_BUFFERSIZE, 256 << 10)
        }
        let names = Set(request.headers.map { $0.name.lowercased() })
        if request.weight == .small, names.isDisjoint(with: ["accept-encoding", "range"]) {
            set(CURLOPT_ACCEPT_ENCODING, "gzip")
        }
        setBody(of: transfer)
        setHeaders(request.headers, names: names)
        setCallbacks(transfer)
    }

    private func setBody(of transfer: CurlTransfer) {
        let request = transfer.request
        if let body = transfer.body {
            set(CURLOPT_UPLOAD, 1)
            unsafe oort_set_offset(pointer, CURLOPT_INFILESIZE_LARGE, curl_off_t(body.count))
        } else if case .bytes(let bytes) = request.body {
            setCopiedBody(bytes)
        } else if request.method == "HEAD" {
            set(CURLOPT_NOBODY, 1)
        } else if ["POST", "PUT", "PATCH"].contains(request.method) {
            setCopiedBody([])
        } else {
            set(CURLOPT_HTTPGET, 1)
        }
        if request.method != "HEAD" { set(CURLOPT_CUSTOMREQUEST, request.method) }
    }

    private func setCopiedBody(_ bytes: [UInt8]) {
        set(CURLOPT_POST, 1)
        unsafe oort_set_offset(
            pointer,
            CURLOPT_POSTFIELDSIZE_LARGE,
            curl_off_t(bytes.count)
        )
        // Never a nil pointer, which would mean: ask the read callback.
        var copied = bytes.isEmpty ? [0] : bytes
        unsafe copied.withUnsafeMutableBytes { buffer in
            unsafe set(CURLOPT_COPYPOSTFIELDS, pointer: buffer.baseAddress)
        }
    }

    private func setHeaders(_ headers: [(name: String, value: String)], names: Set<String>) {
        for (name, value) in headers {
            // A field without a value is written with a semicolon, or libcurl leaves it out.
            append(header: value.isEmpty ? "\(name);" : "\(name): \(value)")
        }
        // Fields that libcurl would add by itself.
        for name in ["Expect", "Content-Type", "Accept"] where !names.contains(name.lowercased()) {
            append(header: name == "Accept" ? "Accept: */*" : "\(name):")
        }
        unsafe set(CURLOPT_HTTPHEADER, pointer: headerList)
    }

    private func append(header: String) {
        // A line break would begin another field.
        let line = header.filter { !$0.isNewline && $0 != "\0" }
        if let list = unsafe curl_slist_append(headerList, line) { unsafe headerList = list }
    }

    private func setCallbacks(_ transfer: CurlTransfer) {
        let context = unsafe Unmanaged.passUnretained(transfer).toOpaque()
        unsafe oort_set_write(pointer, receiveBytes, context)
        unsafe oort_set_header(pointer, receiveHeader, context)
        unsafe oort_set_prereq(pointer, beginSending, context)
        if transfer.body != nil {
            unsafe oort_set_read(pointer, provideBytes, context)
            unsafe oort_set_seek(pointer, rewindBytes, context)
        }
    }

    private func set(_ option: CURLoption, _ value: Int) {
        unsafe oort_set_long(pointer, option, value)
    }

    private func set(_ option: CURLoption, _ value: String) {
        unsafe oort_set_string(pointer, option, value)
    }

    private func set(_ option: CURLoption, pointer value: UnsafeMutableRawPointer?) {
        unsafe oort_set_pointer(pointer, option, value)
    }
}

// MARK: Callbacks, on the loop's thread

private func transfer(_ context: UnsafeMutableRawPointer?) -> CurlTransfer? {
    unsafe context.map {
        unsafe Unmanaged<CurlTransfer>.fromOpaque($0).takeUnretainedValue()
    }
}

private func receiveBytes(
    _ bytes: UnsafeMutablePointer<CChar>?,
    _ size: Int,
    _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let bytes = unsafe bytes, let transfer = unsafe transfer(context), count > 0 else {
        return 0
    }
    let buffer = unsafe UnsafeRawBufferPointer(start: bytes, count: size * count)
    return unsafe transfer.receive(buffer) ? size * count : Int(CURL_WRITEFUNC_PAUSE)
}

private func receiveHeader(
    _ bytes: UnsafeMutablePointer<CChar>?,
    _ size: Int,
    _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let bytes = unsafe bytes, let transfer = unsafe transfer(context) else { return 0 }
    let buffer = unsafe UnsafeRawBufferPointer(start: bytes, count: size * count)
    var line = unsafe String(decoding: buffer, as: UTF8.self)
    while let last = line.last, last.isNewline { line.removeLast() }
    transfer.receiveHeaderLine(line)
    return size * count
}

private func provideBytes(
    _ bytes: UnsafeMutablePointer<CChar>?,
    _ size: Int,
    _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let bytes = unsafe bytes, let transfer = unsafe transfer(context) else {
        return Int(CURL_READFUNC_ABORT)
    }
    let buffer = unsafe UnsafeMutableRawBufferPointer(start: bytes, count: size * count)
    return unsafe transfer.provide(buffer) ?? Int(CURL_READFUNC_PAUSE)
}

private func rewindBytes(
    _ context: UnsafeMutableRawPointer?,
    _ offset: curl_off_t,
    _ origin: CInt
) -> CInt {
    // libcurl only ever goes back to the start.
    guard offset == 0, origin == SEEK_SET, let transfer = unsafe transfer(context) else {
        return CURL_SEEKFUNC_CANTSEEK
    }
    transfer.rewind()
    return CURL_SEEKFUNC_OK
}

private func beginSending(
    _ context: UnsafeMutableRawPointer?,
    _: UnsafeMutablePointer<CChar>?,
    _: UnsafeMutablePointer<CChar>?,
    _: CInt,
    _: CInt
) -> CInt {
    guard let transfer = unsafe transfer(context), transfer.beginSending() else {
        return CURL_PREREQFUNC_ABORT
    }
    return CURL_PREREQFUNC_OK
}
