import ArgumentParser
import Foundation

/// `oort open`.
struct OpenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "open",
        abstract: "Open the web page of a file or folder in the browser.",
        discussion: """
            The page is the service's own, for whoever is signed in there. Its address is printed, too. \
            Servers without such pages (SFTP, S3, plain WebDAV) have none to open.
            """
    )

    @Argument(help: "The file or folder.", completion: .file())
    var path: String

    @Flag(name: .customLong("print"), help: "Print the address only.")
    var prints = false

    func run() async throws {
        let client = ControlClient(folders: try Folders(holding: path))
        let page = try await client.page(PageRequest(path: MountPoint(path).path))
        Console.write(page.url)
        if !prints { Browser.open(page.url) }
    }
}
