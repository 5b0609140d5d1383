/// How a route is called.
struct DropboxStyle: Sendable {
    enum Kind: Sendable {
        case rpc
        case nothing
        case upload
        case download
    }

    var kind: Kind
    var host: String
    var isAuthorized = true
}

extension DropboxSimulator {
    static let styles: [String: DropboxStyle] = {
        var styles: [String: DropboxStyle] = [:]
        let api = "api.dropboxapi.com"
        let content = "content.dropboxapi.com"
        for route in [
            "list_folder", "list_folder/continue", "list_folder/get_latest_cursor",
            "get_metadata", "create_folder_v2", "create_folder_batch",
            "create_folder_batch/check", "delete_v2", "delete_batch", "delete_batch/check",
            "move_v2", "move_batch_v2", "move_batch/check_v2", "copy_v2", "copy_batch_v2",
            "copy_batch/check_v2", "list_revisions", "restore", "search_v2",
            "search/continue_v2", "get_temporary_link", "upload_session/start_batch",
            "upload_session/finish_batch_v2",
        ] {
            styles["files/" + route] = DropboxStyle(kind: .rpc, host: api)
        }
        for route in [
            "upload", "upload_session/start", "upload_session/append_v2",
            "upload_session/append_batch", "upload_session/finish",
        ] {
            styles["files/" + route] = DropboxStyle(kind: .upload, host: content)
        }
        for route in ["download", "export", "get_thumbnail_v2", "get_thumbnail"] {
            styles["files/" + route] = DropboxStyle(kind: .download, host: content)
        }
        styles["files/get_thumbnail_batch"] = DropboxStyle(kind: .rpc, host: content)
        styles["files/list_folder/longpoll"] = DropboxStyle(
            kind: .rpc,
            host: "notify.dropboxapi.com",
            isAuthorized: false
        )
        for route in ["get_current_account", "get_space_usage"] {
            styles["users/" + route] = DropboxStyle(kind: .nothing, host: api)
        }
        styles["check/user"] = DropboxStyle(kind: .rpc, host: api)
        styles["auth/token/revoke"] = DropboxStyle(kind: .nothing, host: api)
        for route in [
            "create_shared_link_with_settings", "list_shared_links", "get_shared_link_metadata",
            "modify_shared_link_settings", "revoke_shared_link",
        ] {
            styles["sharing/" + route] = DropboxStyle(kind: .rpc, host: api)
        }
        styles["sharing/get_shared_link_file"] = DropboxStyle(kind: .download, host: content)
        return styles
    }()

    func perform(
        _ route: String,
        _ argument: JSON,
        _ request: SimulatorRequest
    ) async throws(DropboxFailure) -> SimulatorAnswer {
        switch route {
        case "users/get_current_account": return .json(currentAccount())
        case "users/get_space_usage": return .json(spaceUsage())
        case "check/user":
            let read = try DropboxArgument(argument, known: ["query"], place: "request body")
            return .json(["result": .string(try read.optionalText("query") ?? "")])
        case "auth/token/revoke":
            account.tokens.revoke(request.bearerToken ?? "")
            return .json(.null)

        case "files/list_folder": return .json(try listFolder(argument))
        case "files/list_folder/continue": return .json(try listFolderContinue(argument))
        case "files/list_folder/get_latest_cursor": return .json(try latestCursor(argument))
        case "files/list_folder/longpoll": return .json(try await longPoll(argument))
        case "files/get_metadata": return .json(try getMetadata(argument))
        case "files/search_v2": return .json(try search(argument))
        case "files/search/continue_v2": return .json(try searchContinue(argument))

        case "files/create_folder_v2": return .json(try createFolder(argument))
        case "files/create_folder_batch": return .json(try createFolderBatch(argument))
        case "files/delete_v2": return .json(try delete(argument))
        case "files/delete_batch": return .json(try deleteBatch(argument))
        case "files/move_v2": return .json(try relocate(argument, copies: false))
        case "files/copy_v2": return .json(try relocate(argument, copies: true))
        case "files/move_batch_v2": return .json(try relocateBatch(argument, copies: false))
        case "files/copy_batch_v2": return .json(try relocateBatch(argument, copies: true))
        case "files/create_folder_batch/check", "files/delete_batch/check",
            "files/move_batch/check_v2", "files/copy_batch/check_v2":
            return .json(try checkJob(argument))
        case "files/list_revisions": return .json(try listRevisions(argument))
        case "files/restore": return .json(try restore(argument))

        case "files/upload": return .json(try upload(argument, request.bytes))
        case "files/upload_session/start": return .json(try sessionStart(argument, request.bytes))
        case "files/upload_session/start_batch": return .json(try sessionStartBatch(argument))
        case "files/upload_session/append_v2":
            try sessionAppend(argument, request.bytes)
            return .json(.null)
        case "files/upload_session/append_batch":
            return .json(try sessionAppendBatch(argument, request.bytes))
        case "files/upload_session/finish":
            return .json(try sessionFinish(argument, request.bytes))
        case "files/upload_session/finish_batch_v2": return .json(try sessionFinishBatch(argument))

        case "files/download": return try download(argument, request)
        case "files/export": return try export(argument)
        case "files/get_thumbnail_v2": return try thumbnail(argument, isSecondVersion: true)
        case "files/get_thumbnail": return try thumbnail(argument, isSecondVersion: false)
        case "files/get_thumbnail_batch": return .json(try thumbnailBatch(argument))
        case "files/get_temporary_link": return .json(try getTemporaryLink(argument, request))

        case "sharing/create_shared_link_with_settings":
            return .json(try createSharedLink(argument))
        case "sharing/list_shared_links": return .json(try listSharedLinks(argument))
        case "sharing/get_shared_link_metadata", "sharing/modify_shared_link_settings":
            return .json(try sharedLinkMetadata(argument))
        case "sharing/revoke_shared_link": return .json(try revokeSharedLink(argument))
        case "sharing/get_shared_link_file": return try sharedLinkFile(argument, request)
        default: throw .malformed("Unknown API function: \"\(route)\"")
        }
    }
}
