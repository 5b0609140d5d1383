import OortModel

/// The account that the demo and the tests begin with: ordinary friendly content, and every hard
/// case that the service allows.
public struct SampleAccount: Sendable {
    /// Whether two items of one name may lie in one folder.
    public var allowsDuplicates: Bool
    /// Whether a name may hold a slash.
    public var allowsSlashes: Bool
    /// Whether an item may lead to another.
    public var allowsShortcuts: Bool
    /// Name and media type of a native document of a type; nil when the service has none such.
    public var nativeName: @Sendable (String, SimulatedItem.NativeDocument) -> String?
    /// Entries of the one large folder.
    public var largeFolderCount = 2400
    /// Bytes of the file that is made on the fly.
    public var largeFileSize: Int64 = 300_000_000

    /// A sample account within a service's bounds.
    public init(
        allowsDuplicates: Bool,
        allowsSlashes: Bool,
        allowsShortcuts: Bool,
        nativeName: @escaping @Sendable (String, SimulatedItem.NativeDocument) -> String?
    ) {
        self.allowsDuplicates = allowsDuplicates
        self.allowsSlashes = allowsSlashes
        self.allowsShortcuts = allowsShortcuts
        self.nativeName = nativeName
    }

    /// Fills an empty tree.
    public func fill(_ tree: inout SimulatedTree) {
        let root = tree.rootID
        file(
            "Welcome.txt",
            in: root,
            &tree,
            """
            Welcome to a simulated cloud.

            Everything here behaves as at the real service, but nothing leaves this machine.
            Change, move and delete what you like.

            """
        )
        documents(&tree)
        photos(&tree)
        project(&tree)
        hardCases(&tree)
    }

    private func documents(_ tree: inout SimulatedTree) {
        let documents = folder("Documents", in: tree.rootID, &tree)
        file(
            "Shopping list.txt",
            in: documents,
            &tree,
            "bread\nbutter\napples\ntea\n"
        )
        file(
            "Budget 2026.csv",
            in: documents,
            &tree,
            "month,rent,food,travel\nJanuary,900,310,40\nFebruary,900,295,0\nMarch,900,330,120\n"
        )
        let notes = folder("Notes", in: documents, &tree)
        for (index, title) in ["Birds of the harbour", "Bread without kneading", "Rain gauge"]
            .enumerated()
        {
            file(
                "\(title).md",
                in: notes,
                &tree,
                "# \(title)\n\nNote \(index + 1). See also the other notes in this folder.\n"
            )
        }
        for (title, type, text) in [
            (
                "Travel plan", SimulatedItem.NativeDocument.document,
                "Day 1: arrive.\nDay 2: walk.\n"
            ),
            ("Household", .spreadsheet, "item,price\nlamp,30\nchair,55\n"),
            ("Club evening", .presentation, "Welcome\nThe year in pictures\nThank you\n"),
            ("Workshop notebook", .notebook, ""),
        ] {
            guard let name = nativeName(title, type) else { continue }
            tree.create(
                name,
                in: documents,
                kind: .nativeDocument(type),
                content: SimulatedContent(text),
                modifiedTime: time(200)
            )
        }
        if allowsDuplicates {
            file("Invoice.txt", in: documents, &tree, "The first invoice.\n")
            file("Invoice.txt", in: documents, &tree, "The second invoice, of the same name.\n")
        }
        if allowsSlashes { file("Income/expenses.txt", in: documents, &tree, "in 10, out 9\n") }
        if allowsShortcuts, let target = tree.item(at: ["Documents", "Notes"]) {
            tree.create(
                "Notes (shortcut)",
                in: tree.rootID,
                kind: .shortcut(target: target.id),
                modifiedTime: time(201)
            )
        }
    }

    private func photos(_ tree: inout SimulatedTree) {
        let photos = folder("Photos", in: tree.rootID, &tree)
        let album = folder("2026 Iceland", in: photos, &tree)
        for number in 1...12 {
            let picture = SamplePicture(width: 320, height: 240, seed: UInt64(number))
            let day = number < 10 ? "0\(number)" : "\(number)"
            content(
                "IMG_00\(day).jpg",
                in: album,
                &tree,
                SimulatedContent(picture.jpeg),
                type: "image/jpeg"
            )
        }
        content(
            "map.png",
            in: album,
            &tree,
            SimulatedContent(SamplePicture(width: 160, height: 120, seed: 99).png),
            type: "image/png"
        )
        let videos = folder("Videos", in: tree.rootID, &tree)
        content(
            "Northern lights.mov",
            in: videos,
            &tree,
            SimulatedContent(seed: 300, size: largeFileSize),
            type: "video/quicktime"
        )
    }

    private func project(_ tree: inout SimulatedTree) {
        let projects = folder("Projects", in: tree.rootID, &tree)
        let project = folder("lighthouse", in: projects, &tree)
        file("README.md", in: project, &tree, "# lighthouse\n\nTurns a lamp on at dusk.\n")
        file("Makefile", in: project, &tree, "lamp: src/main.c src/lamp.c\n\tcc -o $@ $^\n")
        file(".gitignore", in: project, &tree, "lamp\n*.o\n")
        let source = folder("src", in: project, &tree)
        file("lamp.h", in: source, &tree, "void lamp_on(void);\n")
        file(
            "lamp.c",
            in: source,
            &tree,
            "#include <stdio.h>\n#include \"lamp.h\"\nvoid lamp_on(void) { puts(\"on\"); }\n"
        )
        file(
            "main.c",
            in: source,
            &tree,
            "#include \"lamp.h\"\nint main(void) { lamp_on(); return 0; }\n"
        )
        file("empty.txt", in: folder("tests", in: project, &tree), &tree, "")
    }

    private func hardCases(_ tree: inout SimulatedTree) {
        let archive = folder("Archive", in: tree.rootID, &tree)
        let receipts = folder("Receipts", in: archive, &tree)
        for number in 1...Swift.max(1, largeFolderCount) {
            let digits = String(number)
            let padded = String(repeating: "0", count: Swift.max(0, 4 - digits.count)) + digits
            file("receipt-\(padded).txt", in: receipts, &tree, "Receipt \(number)\n")
        }
        var deep = folder("Deep", in: archive, &tree)
        for level in 1...20 { deep = folder("level \(level)", in: deep, &tree) }
        file("treasure.txt", in: deep, &tree, "You found it.\n")

        let names = folder("Names", in: tree.rootID, &tree)
        for name in [
            "Grüße aus Köln.txt", "Привет.txt", "日本語のメモ.txt", "مرحبا.txt", "שלום.txt",
            "Ελληνικά.txt", "हिन्दी.txt", "한국어.txt", "🌋 volcano.txt", ".hidden",
            "two  spaces and 'quotes'.txt", "100% & more #1 + [brackets].txt", Self.longName,
        ] {
            file(name, in: names, &tree, "The name of this file is \(name)\n")
        }
    }

    /// 255 bytes of UTF-8 in 91 characters, so that it fits whether bytes or characters count.
    static let longName = "ab" + String(repeating: "語", count: 83) + ".txt"

    private func folder(
        _ name: String,
        in parent: String,
        _ tree: inout SimulatedTree
    ) -> String {
        tree.create(name, in: parent, kind: .folder, modifiedTime: time(0)).id
    }

    private func file(
        _ name: String,
        in parent: String,
        _ tree: inout SimulatedTree,
        _ text: String
    ) {
        content(name, in: parent, &tree, SimulatedContent(text), type: nil)
    }

    private func content(
        _ name: String,
        in parent: String,
        _ tree: inout SimulatedTree,
        _ content: SimulatedContent,
        type: String?
    ) {
        let minutes = Int64(tree.sequence % 50_000)
        tree.create(name, in: parent, content: content, modifiedTime: time(minutes)) {
            $0.mimeType = type
        }
    }

    /// Minutes after 2026-03-01T08:00:00Z.
    private func time(_ minutes: Int64) -> Timestamp {
        Timestamp(seconds: 1_772_352_000 + minutes * 60)
    }
}
