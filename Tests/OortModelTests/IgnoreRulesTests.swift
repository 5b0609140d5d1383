import Foundation
import OortModel
import OortProcesses
import SystemPackage
import Testing

@Suite("what stays on this machine by its name")
struct IgnoreRulesTests {
    /// Folders end with a slash.
    private static let tree = [
        "a", "b.tmp", "c.TMP", ".env", "#x", "!x", "x ", "ü", "a*b", "a?b", "[x]", "back\\slash",
        "node_modules/", "node_modules/m/", "node_modules/m/index.js", "node_modules/keep.txt",
        "src/", "src/a", "src/b.tmp", "src/build/", "src/build/out.o", "src/node_modules/",
        "src/node_modules/x.js", "src/deep/", "src/deep/er/", "src/deep/er/a", "src/deep/a",
        "src/deep/build", "build/", "build/a", "build/keep/", "build/keep/a", "doc/", "doc/a.txt",
        "doc/b.txt", "doc/sub/", "doc/sub/c.txt", "log1", "log2", "logx", "log-", "log]",
        "foo/", "foo/bar/", "foo/bar/baz", "foo/x/", "foo/x/bar/", "foo/x/bar/baz", "abfoo/",
        "abfoo/bar", "aXXb", "aXbXb", "abc", "Abc", "a b", "tab\tname",
    ]

    private static let rules: [[String]] = [
        [], [""], ["#"], ["# comment", "a"], ["\\#x"], ["\\!x"], ["*.tmp"], ["*.TMP", "!c.TMP"],
        ["node_modules/"], ["node_modules"], ["/node_modules"], ["/node_modules/"],
        ["src/node_modules"], ["build/"], ["/build/"], ["src/build"], ["src/build/"], ["build"],
        ["build/*", "!build/keep"], ["build/", "!build/keep/"], ["build/**", "!build/keep/"],
        ["*", "!a"], ["*", "!*/", "!a"], ["/*", "!/src", "/src/*", "!/src/deep"],
        ["**/a"], ["**"], ["/**"], ["src/**"], ["src/**/a"], ["src/**/er/a"], ["**/build"],
        ["**/deep/**"], ["doc/*.txt"], ["/doc/*.txt"], ["doc/**/*.txt"], ["**/*.txt"],
        ["foo/bar"], ["foo/**/bar"], ["foo/*/bar"], ["**foo/bar"], ["f**o"],
        ["log[0-9]"], ["log[!0-9]"], ["log[^0-9x]"], ["log[]-]"], ["log[]]"], ["log[a-"],
        ["log["], ["[[:upper:]]*"], ["log[[:digit:][:alpha:]]"], ["[A-C]bc"], ["log?"],
        ["a?b"], ["a\\?b"], ["a\\*b"], ["a*b"], ["a*b*b"], ["\\[x\\]"], ["back\\\\slash"],
        ["x "], ["x\\ "], ["a  "], ["a b"], [".env", "*.js"], ["/"], ["!"], ["!a"], ["a", "!a"],
        ["a", "!a", "a"], ["src/", "!src/a"], ["a\\"], ["*/a"], ["/*/a"], ["src//a"], ["./a"],
        ["tab\tname"], ["node_modules/", "!node_modules/keep.txt"], ["*.txt", "!doc/", "!doc/*"],
        ["***.tmp"], ["s*/b*/**"], ["/src/*/", "!/src/deep/"], ["[!a]*"],
    ]

    @Test("each rule says of each path what git says")
    func asGit() throws {
        let folder = NSTemporaryDirectory() + "oort-ignore-\(UUID().uuidString)"
        let files = FileManager.default
        defer { try? files.removeItem(atPath: folder) }
        for path in Self.tree {
            let whole = folder + "/" + path
            let parent = path.hasSuffix("/") ? whole : (whole as NSString).deletingLastPathComponent
            try files.createDirectory(atPath: parent, withIntermediateDirectories: true)
            if !path.hasSuffix("/") {
                try #require(files.createFile(atPath: whole, contents: nil))
            }
        }
        _ = try git(["init", "-q"], in: folder)
        let paths = Self.tree.map { $0.hasSuffix("/") ? String($0.dropLast()) : $0 }
        for lines in Self.rules {
            try Data(lines.map { $0 + "\n" }.joined().utf8)
                .write(to: URL(filePath: folder + "/.git/info/exclude"))
            let said = try git(
                ["check-ignore", "--no-index", "--stdin", "-z"],
                in: folder,
                input: paths.joined(separator: "\0") + "\0"
            )
            let theirs = Set(said.split(separator: "\0").map(String.init))
            let rules = IgnoreRules(lines)
            for path in Self.tree {
                let names = path.split(separator: "/").map(String.init)
                let isIgnored = rules.ignore(names, isFolder: path.hasSuffix("/"))
                let bare = path.hasSuffix("/") ? String(path.dropLast()) : path
                #expect(isIgnored == theirs.contains(bare), "\(lines) \(path)")
            }
        }
    }

    private func git(_ arguments: [String], in folder: String, input: String = "") throws -> String
    {
        var git = Program("git", ["-C", folder] + arguments)
        git.environment["GIT_CONFIG_GLOBAL"] = "/dev/null"
        git.environment["GIT_CONFIG_NOSYSTEM"] = "1"
        let file = folder + "/.input"
        try Data(input.utf8).write(to: URL(filePath: file))
        let handle = try #require(FileHandle(forReadingAtPath: file))
        git.input = .descriptor(FileDescriptor(rawValue: handle.fileDescriptor))
        let output = try ProgramPipe()
        git.output = .descriptor(output.writing)
        let number = try git.spawn()
        try output.writing.close()
        let said = output.reading.readAll()
        try output.reading.close()
        // 1: nothing is ignored.
        try #require([.status(0), .status(1)].contains(Program.reap(number)))
        return String(decoding: said, as: UTF8.self)
    }

    @Test("a question mark is one character, whatever its bytes are")
    func scalars() {
        #expect(IgnoreRules(["?"]).ignore(["ü"], isFolder: false))
        #expect(IgnoreRules(["[ä-ü]"]).ignore(["ö"], isFolder: false))
        #expect(!IgnoreRules(["?"]).ignore(["üü"], isFolder: false))
    }

    @Test("a pattern that asks for much work is answered at once")
    func work() {
        let pattern = String(repeating: "a*", count: 200) + "b"
        let name = String(repeating: "a", count: 255)
        #expect(!IgnoreRules([pattern]).ignore([name], isFolder: false))
        let deep = [String](repeating: "**", count: 100).joined(separator: "/x/") + "/y"
        #expect(
            !IgnoreRules([deep]).ignore([String](repeating: "x", count: 200), isFolder: false)
        )
    }
}
