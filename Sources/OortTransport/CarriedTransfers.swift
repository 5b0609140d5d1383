import CCurl

/// The transfers in one loop's curl_multi handle; used by that loop's thread only.
///
/// Safe because `multi` outlives it and every handle in it is one of `carried`.
@safe struct CarriedTransfers: ~Copyable {
    private struct Carried {
        let easy: CurlEasy
        let transfer: CurlTransfer
        let start: ContinuousClock.Instant
        var windowStart: ContinuousClock.Instant
        var windowBytes: Int64 = 0
    }

    private let multi: UnsafeMutableRawPointer
    private let settings: CurlClient.Settings
    /// By the address of the easy handle, which is how libcurl names a transfer.
    private var carried: [UInt: Carried] = [:]
    private var keys: [ObjectIdentifier: UInt] = [:]
    private var idle: [CurlEasy] = []
    private var lastCheck = ContinuousClock.now

    init(multi: UnsafeMutableRawPointer, settings: CurlClient.Settings) {
        unsafe self.multi = multi
        self.settings = settings
    }

    mutating func add(_ transfer: CurlTransfer) {
        guard !transfer.hasEnded else { return }
        guard let easy = idle.popLast() ?? CurlEasy() else {
            transfer.finish(.failure(.unreachable("out of memory")))
            return
        }
        easy.prepare(transfer, settings: settings)
        carried[easy.key] = Carried(
            easy: easy,
            transfer: transfer,
            start: .now,
            windowStart: .now
        )
        keys[ObjectIdentifier(transfer)] = easy.key
        guard unsafe curl_multi_add_handle(multi, easy.pointer) == CURLM_OK else {
            letGo(easy.key, .failure(.unreachable("libcurl refused the request")))
            return
        }
    }

    /// Sets which directions of a transfer libcurl continues; those that are still paused stay so.
    func resume(_ transfer: CurlTransfer) {
        guard let key = keys[ObjectIdentifier(transfer)], let easy = carried[key]?.easy else {
            return
        }
        let paused = transfer.paused
        let mask =
            (paused.receiving ? CURLPAUSE_RECV : 0) | (paused.sending ? CURLPAUSE_SEND : 0)
        _ = unsafe curl_easy_pause(easy.pointer, mask)
    }

    mutating func remove(_ transfer: CurlTransfer) {
        guard let key = keys[ObjectIdentifier(transfer)] else { return }
        letGo(key, .failure(.cancelled))
    }

    mutating func removeAll() {
        for key in Array(carried.keys) { letGo(key, .failure(.cancelled)) }
    }

    mutating func perform() {
        var running: CInt = 0
        _ = unsafe curl_multi_perform(multi, &running)
        for one in carried.values { one.transfer.handOver() }
        var left: CInt = 0
        while let message = unsafe curl_multi_info_read(multi, &left) {
            guard unsafe message.pointee.msg == CURLMSG_DONE,
                let key = unsafe message.pointee.easy_handle.map({ UInt(bitPattern: $0) }),
                let done = carried[key]
            else { continue }
            let code = unsafe oort_message_result(message)
            let error = TransportError(
                code,
                hasBegun: done.transfer.progress.hasBegun,
                detail: done.easy.errorText
            )
            letGo(key, error.map { .failure($0) } ?? .success(()))
        }
        giveUpStalled()
    }

    /// How long the loop may sleep: libcurl shortens it by its own timers.
    var pollMilliseconds: CInt {
        carried.isEmpty ? 60_000 : CInt(checkInterval / .milliseconds(1))
    }

    private var checkInterval: Duration {
        min(.seconds(1), max(.milliseconds(20), settings.stallTimeout / 4))
    }

    private mutating func letGo(
        _ key: UInt,
        _ result: Result<Void, TransportError>
    ) {
        guard let gone = carried.removeValue(forKey: key) else { return }
        keys[ObjectIdentifier(gone.transfer)] = nil
        _ = unsafe curl_multi_remove_handle(multi, gone.easy.pointer)
        gone.easy.reset()
        if idle.count < 32 { idle.append(gone.easy) }
        gone.transfer.finish(result)
    }

    // MARK: Time limits

    private mutating func giveUpStalled() {
        let now = ContinuousClock.now
        guard now - lastCheck >= checkInterval else { return }
        lastCheck = now
        for key in Array(carried.keys) {
            guard let error = judge(key, now: now) else { continue }
            letGo(key, .failure(error))
        }
    }

    /// Why a transfer is to be given up now; nil when it is well.
    private mutating func judge(
        _ key: UInt,
        now: ContinuousClock.Instant
    ) -> TransportError? {
        guard var one = carried[key] else { return nil }
        defer { carried[key] = one }
        let progress = one.transfer.progress
        let moves = progress.hasBegun && (progress.hasHead || progress.isSending)
        guard moves else {
            one.windowStart = now
            one.windowBytes = progress.bytesMoved
            let request = one.transfer.request
            let waited = now - max(one.start, progress.lastSent ?? one.start)
            guard waited > request.answerTimeout + drainTime(of: one.transfer) else { return nil }
            let text = "no answer within \(request.answerTimeout)"
            return progress.hasBegun ? .broken(text) : .unreachable(text)
        }
        if progress.isWaitingForUs {
            one.windowStart = now
            one.windowBytes = progress.bytesMoved
            return nil
        }
        let window = now - one.windowStart
        guard window >= settings.stallTimeout else { return nil }
        let bytes = progress.bytesMoved - one.windowBytes
        one.windowStart = now
        one.windowBytes = progress.bytesMoved
        guard Double(bytes) < Double(settings.minimumSpeed) * (window / .seconds(1)) else {
            return nil
        }
        return .broken("stalled: \(bytes) bytes in \(window)")
    }

    /// What libcurl took from us lies in buffers for a while: up to 4 MiB, at 64 KiB a second.
    private func drainTime(of transfer: CurlTransfer) -> Duration {
        .seconds(Double(min(transfer.body?.count ?? 0, 4 << 20)) / Double(64 << 10))
    }
}
