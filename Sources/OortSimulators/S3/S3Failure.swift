/// An error in S3's words.
///
/// Source: docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html.
struct S3Failure: Error, Sendable {
    var status: Int
    var code: String
    var message: String
    /// Elements that only this code has.
    var fields: [(name: String, value: String)] = []
    var headers: [(name: String, value: String)] = []

    init(
        _ status: Int,
        _ code: String,
        _ message: String,
        fields: [(name: String, value: String)] = [],
        headers: [(name: String, value: String)] = []
    ) {
        self.status = status
        self.code = code
        self.message = message
        self.fields = fields
        self.headers = headers
    }

    /// The body of the answer.
    func xml(for call: S3Call, request id: String) -> String {
        var inner = S3XML.element("Code", code) + S3XML.element("Message", message)
        for field in fields { inner += S3XML.element(field.name, field.value) }
        inner += S3XML.element("Resource", call.request.path)
        inner += S3XML.element("RequestId", id)
        return S3XML.document("<Error>\(inner)</Error>")
    }

    static func noSuchKey(_ key: String) -> S3Failure {
        S3Failure(404, "NoSuchKey", "The specified key does not exist.", fields: [("Key", key)])
    }

    static func unmet(_ condition: String) -> S3Failure {
        S3Failure(
            412,
            "PreconditionFailed",
            "At least one of the pre-conditions you specified did not hold",
            fields: [("Condition", condition)]
        )
    }

    static func argument(_ message: String) -> S3Failure {
        S3Failure(400, "InvalidArgument", message)
    }

    static func denied(_ message: String = "Access Denied") -> S3Failure {
        S3Failure(403, "AccessDenied", message)
    }

    static let malformedXML = S3Failure(
        400,
        "MalformedXML",
        "The XML you provided was not well-formed or did not validate against our published schema"
    )

    static let notImplemented = S3Failure(
        501,
        "NotImplemented",
        "A header or parameter you provided implies functionality that is not implemented"
    )

    static let notAllowed = S3Failure(
        405,
        "MethodNotAllowed",
        "The specified method is not allowed against this resource."
    )

    static let archived = S3Failure(
        403,
        "InvalidObjectState",
        "The operation is not valid for the object's storage class"
    )

    static let conflict = S3Failure(
        409,
        "ConditionalRequestConflict",
        "The conditional request cannot succeed due to a conflicting operation against this "
            + "resource."
    )

    static func noSuchUpload(_ id: String) -> S3Failure {
        S3Failure(
            404,
            "NoSuchUpload",
            "The specified upload does not exist. The upload ID may be invalid, or the upload may "
                + "have been aborted or completed.",
            fields: [("UploadId", id)]
        )
    }

    static func noSuchVersion(_ key: String, _ id: String) -> S3Failure {
        S3Failure(
            404,
            "NoSuchVersion",
            "The specified version does not exist.",
            fields: [("Key", key), ("VersionId", id)]
        )
    }

    /// The account has no room; AWS has no such bound, the words are Ceph's.
    static let noRoom = S3Failure(403, "QuotaExceeded", "The bucket's quota is reached.")
}
