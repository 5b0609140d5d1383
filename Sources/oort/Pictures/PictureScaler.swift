import Foundation
import OortFileSystem
import OortProcesses
import OortSignIn

/// Makes thumbnails of the pictures that services send, by a program of the system's: what comes from
/// elsewhere is not decoded in the process that holds the tokens.
struct PictureScaler: Sendable {
    private static let program = "gdk-pixbuf-thumbnailer"
    /// What a picture that is small takes at most, in KiB of memory and in seconds.
    private static let limits = "ulimit -v 1048576; ulimit -t 20; exec nice -n 10 \"$@\""
    private static let timeLimit = Duration.seconds(30)

    private let tool: String
    private let environment: [String: String]

    /// Nil where the program is not installed.
    init?(_ environment: [String: String]) {
        guard let tool = Program.find(Self.program, environment) else { return nil }
        self.tool = tool
        self.environment = environment.filter { $0.key == "PATH" }
    }

    /// What `oort doctor` says of it.
    static func finding(_ settings: Settings) -> Finding {
        guard !settings.pictureViewers.programs.isEmpty else {
            return .ok("thumbnails", "the services' thumbnails are off in the settings")
        }
        guard PictureScaler(ProcessInfo.processInfo.environment) != nil else {
            return .unknown(
                "thumbnails",
                "\(program) is not installed: file managers show no thumbnails of what is in the "
                    + "cloud only (apt-get install libgdk-pixbuf2.0-bin)"
            )
        }
        return .ok("thumbnails", "file managers are given the services' thumbnails")
    }

    /// The picture of a file as PNG, at most `edge` pixels wide and high; nil where it cannot be read.
    ///
    /// The result lies at `place` meanwhile.
    func scaled(_ picture: String, edge: Int, by place: String) async -> [UInt8]? {
        defer { _ = unsafe unlink(place) }
        let words = ["-c", Self.limits, "sh", tool, "-s", String(edge), picture, place]
        let result = await Program("/bin/sh", words, environment: environment)
            .outcome(timeLimit: Self.timeLimit)
        guard result?.status == 0, let file = FileHandle(forReadingAtPath: place),
            let bytes = try? file.read(upToCount: 4 << 20)
        else { return nil }
        return [UInt8](bytes)
    }
}
