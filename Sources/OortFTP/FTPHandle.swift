import CCurl
import Foundation
import OortModel
import Synchronization

/// How an account's connections are made and watched.
public struct FTPSettings: Sendable {
    /// A file of certificate authorities (PEM) trusted in place of the system's; nil trusts the system's,
    /// and the file's that `SSL_CERT_FILE` names, if it names one.
    public var caFile: String?
    /// The longest time for name resolution, connect and TLS together.
    public var connectTimeout: Duration = .seconds(30)
    /// A connection on which nothing moves for this long is given up.
    public var stallTimeout: Duration = .seconds(120)
    /// A connection that was not used for this long is ended: servers count them.
    public var idleLimit: Duration = .seconds(60)

    /// Settings with the defaults of a long-running program.
    public init(caFile: String? = nil) { self.caFile = caFile }
}

/// Ends a transfer from any thread.
final class FTPCancellation: Sendable {
    private let flag = Atomic<Bool>(false)

    func cancel() { flag.store(true, ordering: .releasing) }

    var isCancelled: Bool { flag.load(ordering: .acquiring) }
}

/// One control connection, kept by a curl easy handle: each transfer blocks until it is done.
///
/// libcurl's verbose output, in which passwords would be, stays off.
// Unchecked because one worker's thread alone uses it, but for `isInterrupted`.
@safe final class FTPHandle: @unchecked Sendable {
    /// Where bytes go that come.
    typealias Sink = (UnsafeRawBufferPointer) -> Int?
    /// Where bytes come from that go: how many were put into the buffer, 0 at the end.
    typealias Source = (UnsafeMutableRawBufferPointer) -> Int?

    private let address: FTPAddress
    private let settings: FTPSettings
    private var pointer: UnsafeMutableRawPointer?
    /// Keeps the connection; the handle is in it from the first transfer on.
    private var multi: UnsafeMutableRawPointer?
    private let errorBuffer: UnsafeMutablePointer<CChar>
    private let isInterrupted = Atomic<Bool>(false)

    // Of the transfer under way.
    private var replies = FTPReplies()
    private var sink: Sink?
    private var source: Source?
    private var cancellation = FTPCancellation()
    private var lastMove = ContinuousClock.now
    private var moved: Int64 = 0
    private var isStalled = false
    /// When the last transfer ended well, by which an old connection is known.
    private var lastUse: ContinuousClock.Instant?

    private static let isLibraryReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    init(_ address: FTPAddress, settings: FTPSettings) {
        self.address = address
        self.settings = settings
        unsafe errorBuffer = .allocate(capacity: Int(CURL_ERROR_SIZE))
        unsafe errorBuffer.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    }

    deinit {
        close()
        unsafe errorBuffer.deallocate()
    }

    /// Ends the transfer under way, and each later one; from any thread.
    func interrupt() { isInterrupted.store(true, ordering: .releasing) }

    /// Ends the connection.
    func close() {
        guard let pointer = unsafe pointer else { return }
        // libcurl would say QUIT and wait for the answer, from a server that may be out of reach.
        let kept = unsafe oort_kept_socket(pointer)
        if kept >= 0 { _ = shutdown(kept, Int32(SHUT_RDWR)) }
        if let multi = unsafe multi { _ = unsafe curl_multi_remove_handle(multi, pointer) }
        unsafe curl_easy_cleanup(pointer)
        if let multi = unsafe multi { _ = unsafe curl_multi_cleanup(multi) }
        unsafe (self.pointer, self.multi) = (nil, nil)
        lastUse = nil
    }

    // MARK: Transfers

    /// Sends commands, one after the other whatever the answers, and returns the answers.
    ///
    /// - Throws: where not all were answered; some may have been carried out.
    func control(
        _ commands: [[UInt8]],
        password: String,
        _ cancellation: FTPCancellation
    ) throws(FTPFailure) -> [FTPReply] {
        begin(cancellation)
        try prepare("", password: password)
        set(CURLOPT_NOBODY, 1)
        let list = quote(commands)
        defer { list.free() }
        set(CURLOPT_QUOTE, list)
        try perform()
        guard replies.all.count >= commands.count, !replies.isTooMuch else {
            throw FTPFailure(.malformed, "a command was not answered")
        }
        return Array(replies.all.suffix(commands.count))
    }

    /// All that `MLSD` says of a folder.
    func list(
        _ path: FTPPath,
        before commands: [[UInt8]],
        password: String,
        _ cancellation: FTPCancellation
    ) throws(FTPFailure) -> [UInt8] {
        begin(cancellation)
        let slash = path.bytes == [0x2F] ? "" : "/"
        try prepare(path.encoded + slash, password: password)
        set(CURLOPT_CUSTOMREQUEST, "MLSD")
        let list = quote(commands)
        defer { list.free() }
        set(CURLOPT_QUOTE, list)
        var bytes: [UInt8] = []
        var isTooLong = false
        unsafe sink = { part in
            guard bytes.count + part.count <= Self.longestListing else {
                isTooLong = true
                return nil
            }
            unsafe bytes.append(contentsOf: part)
            return part.count
        }
        do throws(FTPFailure) { try perform() } catch {
            throw isTooLong ? FTPFailure(.malformed, "a listing of more than 1 GiB") : error
        }
        try checkEnd()
        return bytes
    }

    /// Bytes of the longest listing that is read.
    private static let longestListing = 1 << 30

    /// Reads a file from `offset` on, until `sink` takes no more (nil) or the file ends.
    func retrieve(
        _ path: FTPPath,
        from offset: Int64,
        password: String,
        _ cancellation: FTPCancellation,
        to sink: @escaping Sink
    ) throws(FTPFailure) {
        begin(cancellation)
        try prepare(path.encoded, password: password)
        set(CURLOPT_RESUME_FROM_LARGE, offset: offset)
        unsafe self.sink = sink
        try perform()
        try checkEnd()
    }

    /// Writes a file of `size` bytes.
    func store(
        _ path: FTPPath,
        size: Int64,
        password: String,
        _ cancellation: FTPCancellation,
        from source: @escaping Source
    ) throws(FTPFailure) {
        begin(cancellation)
        try prepare(path.encoded, password: password)
        set(CURLOPT_UPLOAD, 1)
        set(CURLOPT_INFILESIZE_LARGE, offset: size)
        unsafe self.source = source
        try perform()
        try checkEnd()
    }

    /// Whether the connection was not used for a while, so that the server may have ended it.
    var isOld: Bool { lastUse.map { .now - $0 > .seconds(5) } ?? true }

    /// Whether a connection is there, as far as is known here.
    var isConnected: Bool { lastUse != nil }

    // MARK: Inside

    private func begin(_ cancellation: FTPCancellation) {
        replies = FTPReplies()
        unsafe sink = nil
        unsafe source = nil
        self.cancellation = cancellation
        (lastMove, moved, isStalled) = (.now, 0, false)
    }

    private func prepare(
        _ path: String,
        password: String
    ) throws(FTPFailure) {
        if unsafe pointer == nil {
            guard Self.isLibraryReady, let multi = unsafe curl_multi_init() else {
                throw FTPFailure(.unreachable, "libcurl could not be set up")
            }
            guard let new = unsafe curl_easy_init() else {
                _ = unsafe curl_multi_cleanup(multi)
                throw FTPFailure(.unreachable, "libcurl could not be set up")
            }
            unsafe (pointer, self.multi) = (new, multi)
        }
        guard let pointer = unsafe pointer, let multi = unsafe multi else {
            throw FTPFailure(.unreachable, "libcurl could not be set up")
        }
        // Nothing where it is not in it yet.
        _ = unsafe curl_multi_remove_handle(multi, pointer)
        // Keeps the connection.
        unsafe curl_easy_reset(pointer)
        unsafe errorBuffer.pointee = 0
        unsafe oort_set_pointer(pointer, CURLOPT_ERRORBUFFER, errorBuffer)
        set(CURLOPT_URL, address.base + path)
        set(CURLOPT_PROTOCOLS_STR, "ftp,ftps")
        set(CURLOPT_NOSIGNAL, 1)
        set(CURLOPT_QUICK_EXIT, 1)
        set(CURLOPT_USERNAME, address.user ?? "")
        set(CURLOPT_PASSWORD, password)
        // A proxy of the environment that knows HTTP only would make requests of HTTP out of commands.
        set(CURLOPT_HTTPPROXYTUNNEL, 1)
        set(CURLOPT_FTP_FILEMETHOD, Int(CURLFTPMETHOD_NOCWD.rawValue))
        set(CURLOPT_CONNECTTIMEOUT_MS, milliseconds(settings.connectTimeout))
        let patience = max(1, Int(settings.stallTimeout / .seconds(1)))
        set(CURLOPT_SERVER_RESPONSE_TIMEOUT, patience)
        set(CURLOPT_TCP_KEEPALIVE, 1)
        set(CURLOPT_BUFFERSIZE, 256 << 10)
        set(CURLOPT_UPLOAD_BUFFERSIZE, 256 << 10)
        setSecurity()
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe oort_set_header(pointer, takeReply, context)
        unsafe oort_set_progress(pointer, watch, context)
        unsafe oort_set_write(pointer, takeBytes, context)
        unsafe oort_set_read(pointer, giveBytes, context)
    }

    private func milliseconds(_ duration: Duration) -> Int {
        max(1, Int(clamping: duration.inMilliseconds))
    }

    private func setSecurity() {
        guard address.security != .plain else { return }
        set(CURLOPT_USE_SSL, Int(CURLUSESSL_ALL.rawValue))
        set(CURLOPT_FTPSSLAUTH, Int(CURLFTPAUTH_TLS.rawValue))
        // TLS 1.2 and no later one: with TLS 1.3 a server sends the ticket, by which the next data
        // connection is known to be of the same person, after the handshake; libcurl 7.88.1 closes an
        // upload's connection before it has read it, and ProFTPD refuses the next one (425).
        set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2) | Int(CURL_SSLVERSION_MAX_TLSv1_2))
        // libcurl with OpenSSL does not look at the variable by itself.
        if let file = settings.caFile ?? ProcessInfo.processInfo.environment["SSL_CERT_FILE"] {
            set(CURLOPT_CAINFO, file)
        }
        // Or the system's authorities, which Debian's libcurl takes from a folder, stay trusted.
        if settings.caFile != nil, let pointer = unsafe pointer {
            unsafe oort_set_pointer(pointer, CURLOPT_CAPATH, nil)
        }
    }

    private func quote(_ commands: [[UInt8]]) -> CommandList {
        // With a star in front libcurl goes on after a refusal, so that each answer can be read here.
        CommandList(commands.map { [UInt8(ascii: "*")] + $0 })
    }

    private func perform() throws(FTPFailure) {
        guard let pointer = unsafe pointer, let multi = unsafe multi else {
            throw FTPFailure(.unreachable, "there is no connection")
        }
        if isEnded { throw FTPFailure(.cancelled, "ended") }
        let code = unsafe oort_perform(multi, pointer)
        // By the greeting: libcurl's count of new connections has those of the data, too.
        let isFresh = lastUse == nil || replies.all.contains { $0.code == 220 }
        let isLoggedIn = !isFresh || replies.all.contains { $0.code == 230 || $0.code == 232 }
        unsafe sink = nil
        unsafe source = nil
        let text = unsafe String(cString: errorBuffer)
        let failure = FTPFailure(
            code,
            text: text,
            replies: replies.all,
            isFresh: isFresh,
            isLoggedIn: isLoggedIn
        )
        guard let failure else {
            lastUse = .now
            return
        }
        if case .refused = failure.kind, !failure.isOutOfStep {
            lastUse = .now
        } else {
            // So that what the next transfer says about its connection is certain.
            close()
        }
        guard isStalled else { throw failure }
        throw FTPFailure(isLoggedIn ? .lost : .unreachable, "nothing moved for too long")
    }

    /// Refuses the end of a transfer that the server did not confirm.
    private func checkEnd() throws(FTPFailure) {
        guard let last = replies.all.last else { throw FTPFailure(.malformed, "no answer") }
        guard last.code == 226 || last.code == 250 else {
            throw FTPFailure(.refused(last), last.words)
        }
    }

    private var isEnded: Bool {
        isInterrupted.load(ordering: .acquiring) || cancellation.isCancelled
    }

    /// Whether the transfer under way is to end; who waits in a callback asks this.
    var mustEnd: Bool { isEnded }

    fileprivate func heard(_ line: UnsafeRawBufferPointer) {
        unsafe replies.take(line: line)
        lastMove = .now
    }

    fileprivate func took(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard let sink = unsafe sink else { return bytes.count }
        // The wait for a slow reader is none for the server.
        defer { lastMove = .now }
        return unsafe sink(bytes) ?? 0
    }

    fileprivate func gave(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        defer { lastMove = .now }
        return unsafe source?(buffer) ?? Int(CURL_READFUNC_ABORT)
    }

    /// Whether the transfer may go on.
    fileprivate func watched(_ bytes: Int64) -> Bool {
        if isEnded { return false }
        if bytes != moved {
            moved = bytes
            lastMove = .now
        }
        guard .now - lastMove > settings.stallTimeout else { return true }
        isStalled = true
        return false
    }

    private func set(_ option: CURLoption, _ list: CommandList) {
        guard let pointer = unsafe pointer else { return }
        unsafe oort_set_pointer(pointer, option, list.first)
    }

    private func set(_ option: CURLoption, offset: Int64) {
        guard let pointer = unsafe pointer else { return }
        unsafe oort_set_offset(pointer, option, curl_off_t(offset))
    }

    private func set(_ option: CURLoption, _ value: Int) {
        guard let pointer = unsafe pointer else { return }
        unsafe oort_set_long(pointer, option, value)
    }

    private func set(_ option: CURLoption, _ value: String) {
        guard let pointer = unsafe pointer else { return }
        unsafe oort_set_string(pointer, option, value)
    }
}

/// Commands as libcurl takes them; freed by `free`, after the transfer.
@safe private struct CommandList {
    private(set) var first: UnsafeMutablePointer<curl_slist>?

    init(_ commands: [[UInt8]]) {
        unsafe first = nil
        for command in commands {
            let line = command + [0]
            unsafe line.withUnsafeBytes { bytes in
                let text = unsafe bytes.bindMemory(to: CChar.self)
                if let longer = unsafe curl_slist_append(first, text.baseAddress) {
                    unsafe first = longer
                }
            }
        }
    }

    func free() { unsafe curl_slist_free_all(first) }
}

// MARK: Callbacks, on the worker's thread

private func handle(_ context: UnsafeMutableRawPointer?) -> FTPHandle? {
    unsafe context.map { unsafe Unmanaged<FTPHandle>.fromOpaque($0).takeUnretainedValue() }
}

private func takeReply(
    _ bytes: UnsafeMutablePointer<CChar>?,
    _ size: Int,
    _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let bytes = unsafe bytes, let handle = unsafe handle(context) else { return 0 }
    unsafe handle.heard(UnsafeRawBufferPointer(start: bytes, count: size * count))
    return size * count
}

private func takeBytes(
    _ bytes: UnsafeMutablePointer<CChar>?,
    _ size: Int,
    _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let bytes = unsafe bytes, let handle = unsafe handle(context) else { return 0 }
    return unsafe handle.took(UnsafeRawBufferPointer(start: bytes, count: size * count))
}

private func giveBytes(
    _ bytes: UnsafeMutablePointer<CChar>?,
    _ size: Int,
    _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let bytes = unsafe bytes, let handle = unsafe handle(context) else {
        return Int(CURL_READFUNC_ABORT)
    }
    return unsafe handle.gave(UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
}

private func watch(
    _ context: UnsafeMutableRawPointer?,
    _: curl_off_t,
    _ down: curl_off_t,
    _: curl_off_t,
    _ up: curl_off_t
) -> CInt {
    guard let handle = unsafe handle(context) else { return 1 }
    return handle.watched(Int64(down).addingSaturating(Int64(up))) ? 0 : 1
}
