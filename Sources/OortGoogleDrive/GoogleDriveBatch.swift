import Foundation
import OortModel
import OortTransport

extension GoogleDriveProvider {
    /// Sends many small calls as one.
    ///
    /// Each answer stands for itself: what the batch did not settle (slow down, a fault, a refusal
    /// that needs a second look) is done again `alone`, where patience and repetition are at home.
    func inBatch<Entry: Sendable, Answer: Sendable>(
        _ entries: [Entry],
        request: (Entry) async throws(ProviderError) -> HTTPRequest,
        result: (Entry, HTTPResponse) async throws(ProviderError) -> Answer,
        alone: (Entry) async throws(ProviderError) -> Answer
    ) async -> [Result<Answer, ProviderError>] {
        var answers = [HTTPResponse?](repeating: nil, count: entries.count)
        // An entry that may have been done by the batch.
        var mayBeDone = false
        if entries.count > 1 {
            do throws(ProviderError) {
                var requests: [HTTPRequest] = []
                for entry in entries { requests.append(try await request(entry)) }
                answers = try await api.batch(requests)
                mayBeDone = true
            } catch {
                mayBeDone = error.isOutcomeUnknown
                // An entry that cannot be asked fails alone; a lost network fails all.
                if error.kind == .offline || error.kind == .cancelled || error.kind == .signedOut
                    || error.kind == .clientRefused
                {
                    return entries.map { _ in .failure(error) }
                }
            }
        }
        var results: [Result<Answer, ProviderError>] = []
        for (entry, answer) in zip(entries, answers) {
            do throws(ProviderError) {
                if let answer, (200..<300).contains(answer.head.status) {
                    results.append(.success(try await result(entry, answer)))
                } else {
                    results.append(.success(try await alone(entry)))
                }
            } catch {
                let isRefused = answer.map { (400..<500).contains($0.head.status) } ?? false
                results.append(
                    .failure(mayBeDone && !isRefused ? error.asUnknownOutcome : error)
                )
            }
        }
        return results
    }
}

extension GoogleDriveAPI {
    /// One `multipart/mixed` call of at most 100 calls, none of which carries content; answers in
    /// the order of the requests, nil where there is none.
    ///
    /// Source: developers.google.com/workspace/drive/api/guides/performance.
    func batch(_ requests: [HTTPRequest]) async throws(ProviderError) -> [HTTPResponse?] {
        let boundary = MultipartBoundary()
        var body: [UInt8] = []
        for (index, request) in requests.enumerated() {
            let path = request.url.dropFirst(endpoints.api.count)
            var head = "--\(boundary)\r\nContent-Type: application/http\r\n"
            head += "Content-ID: <\(index)>\r\n\r\n\(request.method) \(path) HTTP/1.1\r\n"
            for field in request.headers { head += "\(field.name): \(field.value)\r\n" }
            var content: [UInt8] = []
            if case .bytes(let bytes) = request.body { content = bytes }
            if !content.isEmpty { head += "Content-Length: \(content.count)\r\n" }
            body += Array((head + "\r\n").utf8) + content + Array("\r\n".utf8)
        }
        body += Array("--\(boundary)--\r\n".utf8)
        let response: HTTPResponse
        switch try await perform(
            HTTPRequest(
                method: "POST",
                url: url("/batch/drive/v3", []),
                headers: [("Content-Type", "multipart/mixed; boundary=\(boundary)")],
                body: .bytes(body),
                repetition: .harmless,
                answerTimeout: .seconds(120)
            )
        )
        {
        case .success(let answer): response = answer
        case .refused(let failure): throw failure.error
        }
        var answers = [HTTPResponse?](repeating: nil, count: requests.count)
        for (index, answer) in BatchAnswer.parts(of: response) where answers.indices.contains(index)
        {
            answers[index] = answer
        }
        return answers
    }
}

/// The parts of a batch's answer: each an HTTP answer with the number of its request.
enum BatchAnswer {
    static func parts(of response: HTTPResponse) -> [(Int, HTTPResponse)] {
        guard let type = response.head.header("Content-Type"),
            let equals = type.range(of: "boundary=")
        else { return [] }
        let boundary = type[equals.upperBound...].prefix { $0 != ";" }
            .trimmingCharacters(in: CharacterSet(charactersIn: "\" "))
        guard !boundary.isEmpty else { return [] }
        let body = Data(response.body)
        let mark = Data("--\(boundary)".utf8)
        var parts: [(Int, HTTPResponse)] = []
        var from = body.range(of: mark)?.upperBound
        while let start = from, let end = body.range(of: mark, in: start..<body.endIndex) {
            if let part = part(body[start..<end.lowerBound], version: response.head.httpVersion) {
                parts.append(part)
            }
            from = end.upperBound
        }
        return parts
    }

    private static func part(_ data: Data, version: String) -> (Int, HTTPResponse)? {
        guard let outer = split(data), let inner = split(outer.rest),
            let identifier = outer.lines.lazy.compactMap({ value(of: "content-id", in: $0) }).first,
            let index = Int(identifier.filter { $0.isASCII && $0.isNumber }),
            let line = inner.lines.first
        else { return nil }
        let words = line.split(separator: " ")
        guard words.count >= 2, words[0].hasPrefix("HTTP/"), let status = Int(words[1]) else {
            return nil
        }
        let headers = inner.lines.dropFirst().compactMap { line -> (name: String, value: String)? in
            guard let colon = line.firstIndex(of: ":") else { return nil }
            return (
                String(line[..<colon]),
                line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
            )
        }
        return (
            index,
            HTTPResponse(
                head: HTTPResponseHead(status: status, headers: headers, httpVersion: version),
                body: Array(inner.rest)
            )
        )
    }

    /// Header lines and what follows the empty line; line ends are CRLF, or LF alone.
    private static func split(_ data: Data) -> (lines: [String], rest: Data)? {
        var lines: [String] = []
        var rest = data
        while let end = rest.firstIndex(of: 10) {
            var line = rest[rest.startIndex..<end]
            if line.last == 13 { line = line.dropLast() }
            rest = rest[rest.index(after: end)...]
            if line.isEmpty {
                // The line end after the boundary comes before any field.
                if lines.isEmpty { continue }
                return (lines, rest)
            }
            lines.append(String(decoding: line, as: UTF8.self))
        }
        return nil
    }

    private static func value(of name: String, in line: String) -> String? {
        guard let colon = line.firstIndex(of: ":"), line[..<colon].lowercased() == name else {
            return nil
        }
        return line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
    }
}
