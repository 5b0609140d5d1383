import Foundation
import OortModel

/// The page of `oort web`: which address shows or does what, and who may.
///
/// It keeps nothing of the mount: each page asks the control socket, and reads files through the mount.
struct Site: Sendable {
    /// The user's folders.
    let folders: Folders
    /// Asks the running mount.
    let client: ControlClient
    /// Where the page is: `http://127.0.0.1:PORT`.
    let origin: String
    /// The only allowed value of a `Host` field: another one is a name that somebody gave to 127.0.0.1 to
    /// make a browser believe that this page is theirs.
    private let host: String
    /// The cookie's name; browsers send cookies of all ports of 127.0.0.1 to each of them.
    private let cookieName: String
    /// Who may see it.
    let admission: SiteAdmission
    /// The sign-ins that a person began here.
    let signIns = SiteSignIns()
    /// Called when the token was brought.
    private let entered: @Sendable () -> Void

    init(
        folders: Folders,
        port: UInt16,
        admission: SiteAdmission,
        entered: @escaping @Sendable () -> Void
    ) {
        self.folders = folders
        client = ControlClient(folders: folders)
        host = "127.0.0.1:\(port)"
        origin = "http://\(host)"
        cookieName = "oort-web-\(port)"
        self.admission = admission
        self.entered = entered
    }

    /// One request of a person who may see the page.
    struct Visit: Sendable {
        let request: SiteRequest
        /// What the fields of a form say; empty for a page.
        let form: [String: String]
        /// What every form brings along.
        let formToken: String
        /// The path behind the first name of the address, decoded.
        let path: SitePath
    }

    /// Answers a request, whatever is asked by whomever.
    func answer(_ request: SiteRequest) async -> SiteAnswer {
        guard ["GET", "HEAD", "POST"].contains(request.method) else {
            return .words("This page knows GET, HEAD and POST.", status: 405)
        }
        guard request.field("host") == host else {
            return .words("This page is at \(origin) and nowhere else.", status: 421)
        }
        let isPost = request.method == "POST"
        if !isPost {
            switch request.path {
            case "/style.css": return .part(SiteStyle.text, type: "text/css; charset=utf-8")
            case "/script.js": return .part(SiteScript.text, type: "text/javascript; charset=utf-8")
            case "/icon.svg": return .part(SiteStyle.icon, type: "image/svg+xml")
            case "/enter": return enter(request)
            default:
                if let sign = SiteSign(address: request.path) {
                    return .part(sign.picture, type: "image/svg+xml")
                }
            }
        }
        // What browsers say of who asks; a page of another port is of the same site, but not ours.
        if let asker = request.field("sec-fetch-site"), asker != "same-origin", asker != "none" {
            return .words("This page answers to itself only; type its address.", status: 403)
        }
        guard let session = admission.session(of: request.cookie(cookieName)) else {
            return .page(Self.closedPage, status: 401)
        }
        if isPost {
            guard request.field("origin") == origin else {
                return .words("This form was not sent by this page.", status: 403)
            }
            guard let token = request.form["token"],
                SiteAdmission.same(token, session.formToken)
            else {
                return .words("This form is not of this visit; load its page anew.", status: 403)
            }
        }
        let parts = request.path.dropFirst().split(
            separator: "/",
            maxSplits: 1,
            omittingEmptySubsequences: false
        )
        guard let path = SitePath(encoded: parts.count > 1 ? parts[1] : "") else {
            return .words("This is no address of a file.", status: 400)
        }
        let visit = Visit(
            request: request,
            form: isPost ? request.form : [:],
            formToken: session.formToken,
            path: path
        )
        do throws(Failure) {
            let place = String(parts.first ?? "")
            return isPost ? try await act(place, visit) : try await show(place, visit)
        } catch {
            return failed(error, visit)
        }
    }

    /// Shows a page or a file.
    private func show(_ place: String, _ visit: Visit) async throws(Failure) -> SiteAnswer {
        switch place {
        case "": return .page(try await overview(visit))
        case "live": return .page(try await live(visit))
        case "files": return .page(try await files(visit))
        case "content": return try await content(visit)
        case "thumbnail": return try await thumbnail(visit)
        case "search": return .page(try await search(visit))
        case "pins": return .page(try await pins(visit))
        case "trash": return .page(try await trash(visit))
        case "versions": return .page(try await versions(visit))
        case "conflicts": return .page(try await conflicts(visit))
        case "accounts": return .page(try await accounts(visit))
        case "sign-in": return .page(try await signIn(visit))
        case "sign-in-step": return try signInStep(visit)
        case "sign-out": return .page(try await signOut(visit))
        case "settings": return .page(try await settings(visit))
        case "log": return .page(try await log(visit))
        default: return notFound(visit)
        }
    }

    private func notFound(_ visit: Visit) -> SiteAnswer {
        let body: HTML = "<p>There is no page at this address.</p>"
        return .page(page("Not found", current: "", visit, body), status: 404)
    }

    /// Says what could not be done: on the page that was asked for, or, after a form, on the next one.
    private func failed(_ failure: Failure, _ visit: Visit) -> SiteAnswer {
        if visit.request.method == "POST", client.isMountRunning {
            admission.tell("\(failure)", isFailure: true)
            return .see(Self.place(visit.form["back"]))
        }
        let body: HTML = """
            <div class="notice failure" role="alert"><p>\(failure.message)</p>\
            \(failure.advice.map { "<p>\($0)</p>" as HTML })</div>
            """
        return .page(
            page("That did not work", current: "", visit, body),
            status: client.isMountRunning ? 404 : 503
        )
    }

    /// A place of this page that a form names: a name of one of its pages and a path, or its first page.
    static func place(_ text: String?) -> String {
        guard let parts = text?.dropping(beginning: "/")?.parts(between: "/"),
            let name = parts.first,
            ["files", "pins", "trash", "versions", "conflicts", "accounts", "sign-in"]
                .contains(name),
            let path = SitePath(encoded: parts.dropFirst().joined(separator: "/"))
        else { return "/" }
        return "/\(name)/\(path.encoded)"
    }

    // MARK: The way in

    private func enter(_ request: SiteRequest) -> SiteAnswer {
        guard let session = admission.enter(with: request.query["token"] ?? "") else {
            return .page(Self.closedPage, status: 401)
        }
        entered()
        // A page of its own, and not a redirect: to a redirect that another page began, browsers do not
        // bring a strict cookie.
        var answer = SiteAnswer.page(Self.enteredPage)
        answer.fields.append(
            (
                "Set-Cookie",
                "\(cookieName)=\(session.cookie); HttpOnly; SameSite=Strict; Path=/"
            )
        )
        return answer
    }

    private static let enteredPage: HTML = """
        <!doctype html>
        <html lang="en"><head><meta charset="utf-8"><title>Oort</title>
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <meta http-equiv="refresh" content="0;url=/">
        <link rel="stylesheet" href="/style.css"></head>
        <body><main id="main"><h1>Oort</h1><p><a href="/">Go on to the page</a></p></main></body></html>
        """

    private static let closedPage: HTML = """
        <!doctype html>
        <html lang="en"><head><meta charset="utf-8"><title>Oort: not open to you</title>
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <link rel="stylesheet" href="/style.css"></head>
        <body><main id="main"><h1>Not open to this browser</h1>
        <p>The address that <code>oort web</code> prints opens this page once, in one browser, within ten
        minutes. Start <code>oort web</code> anew for another one.</p></main></body></html>
        """

    // MARK: Frame

    private static let chapters: [(place: String, title: String)] = [
        ("/", "Overview"), ("/files/", "Files"), ("/pins", "Kept here"), ("/trash", "Trash"),
        ("/conflicts", "Conflicts"), ("/accounts", "Accounts"), ("/settings", "Settings"),
        ("/log", "Log"),
    ]

    /// A whole page; `current` is the place of its chapter, `head` what its head has beside the usual.
    func page(
        _ title: String,
        current: String,
        _ visit: Visit,
        head: HTML = "",
        _ body: HTML
    ) -> HTML {
        let chapters = Self.chapters.map { chapter -> HTML in
            let mark: HTML = chapter.place == current ? " aria-current=\"page\"" : ""
            return "<li><a href=\"\(chapter.place)\"\(mark)>\(chapter.title)</a></li>"
        }
        let notice = admission.takeNotice().map { notice -> HTML in
            notice.isFailure
                ? "<div class=\"notice failure\" role=\"alert\"><p>\(HTML.lines(notice.words))</p></div>"
                : "<div class=\"notice\" role=\"status\"><p>\(HTML.lines(notice.words))</p></div>"
        }
        return """
            <!doctype html>
            <html lang="en"><head><meta charset="utf-8"><title>\(title) – Oort</title>
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta name="color-scheme" content="light dark">
            <link rel="stylesheet" href="/style.css"><link rel="icon" href="/icon.svg">
            <script src="/script.js" defer></script>\(head)</head>
            <body><a class="skip" href="#main">Skip to the content</a>
            <header><a class="home" href="/"><img src="/icon.svg" alt="" width="28" height="28"> Oort</a>
            <nav aria-label="Chapters"><ul>\(chapters)</ul></nav>
            <form class="find" role="search" action="/search"><label class="hidden" for="find">Search all \
            clouds</label><input id="find" name="words" type="search" placeholder="Search all clouds" \
            autocomplete="off"><button>Search</button></form></header>
            <main id="main" tabindex="-1">\(notice)<h1>\(title)</h1>
            \(body)
            </main></body></html>
            """
    }

    /// A button that does something; `fields` go with it.
    func button(
        _ words: String,
        _ place: String,
        _ visit: Visit,
        back: String,
        label: String? = nil,
        fields: [(String, String)] = [],
        more: HTML = ""
    ) -> HTML {
        let hidden = fields.map { name, value -> HTML in
            "<input type=\"hidden\" name=\"\(name)\" value=\"\(value)\">"
        }
        let spoken = label.map { " aria-label=\"\($0)\"" as HTML }
        return """
            <form class="act" method="post" action="\(place)">\
            <input type="hidden" name="token" value="\(visit.formToken)">\
            <input type="hidden" name="back" value="\(back)">\(hidden)\(more)\
            <button\(spoken)>\(words)</button></form>
            """
    }

    /// Where the running mount is.
    func mountPoint() async throws(Failure) -> String {
        guard let mount = try await client.status().mount else { throw Self.notMounted }
        return mount.mountPoint
    }

    /// The files of the running mount.
    func mountFiles() async throws(Failure) -> MountFiles {
        MountFiles(mountPoint: try await mountPoint())
    }

    private static let notMounted = Failure("No mount is running.", advice: "Start one: oort mount")
}
