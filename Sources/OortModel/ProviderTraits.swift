/// How a service differs from the others, declared so that nobody has to ask which service it is.
public struct ProviderTraits: Sendable {
    /// How news of changes arrive.
    public enum Feed: Sendable, Hashable {
        /// `waitForChanges` holds a request open at the service.
        case longPoll
        /// `waitForChanges` sleeps; the feed itself is asked then.
        case poll
        /// There is no feed: `waitForChanges` sleeps and has the next `changes` look at the service. An
        /// item that another client moved may come as one that is gone and a new one.
        case scan
    }

    /// The most entries in one batch call; 1 means that there is no batch form.
    public struct BatchSizes: Sendable, Hashable {
        /// Entries of one `createFolders`.
        public var createFolder = 1
        /// Entries of one `upload(_:)` of many.
        public var upload = 1
        /// Bytes that the content of one entry of `upload(_:)` may have.
        public var largestUpload: Int64 = 1 << 20
        /// Entries of one `move(_:)` of many.
        public var move = 1
        /// Entries of one `delete(_:)` of many.
        public var delete = 1

        /// No batch form of anything.
        public init() {}
    }

    /// Which names it takes and how it compares them.
    public var names: NameRules
    /// The hash by which it names files' contents; verifies transfers and finds equal content.
    public var hashAlgorithm: HashAlgorithm
    /// Whether it reports that hash of files at all; if not, only this machine computes it.
    public var tellsHashes = true
    /// Bytes that one simple upload may have; above, upload sessions are used.
    public var largestSimpleUpload: Int64
    /// The largest file, in bytes.
    public var largestFile: Int64
    /// Every part of an upload session but the last is a multiple of this, in bytes.
    public var uploadPartMultiple: Int64
    /// The size of the smallest part but the last that the provider sends, in bytes.
    public var uploadPartSize: Int64
    /// The most entries in one batch call.
    public var batchSizes = BatchSizes()
    /// Whether replacing a revision is refused by the service itself when the revision is stale.
    public var replaceIsAtomic: Bool
    /// Whether a creation or a move is refused when its name is taken (else the service makes a
    /// duplicate): where it is not, the feed is read before a folder is made.
    public var refusesTakenNames: Bool
    /// Whether a creation in a folder that somebody removed may create that folder again, instead of
    /// failing with `.parentNotFound`.
    public var makesMissingFolders = false
    /// Whether the client may choose the id of what it creates (`reserveIDs`).
    public var takesClientIDs: Bool
    /// Whether a file has the modified time that its upload names; else the service's own.
    public var keepsModifiedTime = true
    /// Whether the modified time of an item can be set without uploading its content.
    public var setsModifiedTime: Bool
    /// Whether setting a time gives the same content another revision, and the provider compares the file
    /// before it does; if not, another revision always means other content.
    public var timeChangesRevision = false
    /// What the revision of a `NAME.rclonelink` begins with where that is a link `NAME` on the service's
    /// disk, so that nothing else can be called `NAME` there; nil where links are files like others.
    public var linkMark: String?
    /// Whether folders have a modified time of their own that can be set.
    public var setsFolderModifiedTime: Bool
    /// How finely modified times are kept.
    public var timeResolution: TimeResolution
    /// Whether the description can be written.
    public var setsDescription: Bool
    /// Whether a file can be copied at the service.
    public var copiesFiles: Bool
    /// Whether a rename that only changes case needs a temporary name between.
    public var caseRenameNeedsDetour: Bool
    /// Whether an item's revision may change when the item, or a folder above it, is moved although
    /// its content stays.
    public var moveChangesRevision: Bool
    /// Whether only the service can say if a folder can be created: then it is created there before `mkdir`
    /// returns, so that a refusal is reported at once.
    public var makesFoldersItself = false
    /// Whether only the service fills folders, with native documents: then `rmdir` removes one with all
    /// that lies in it, and no document can be removed by itself.
    public var fillsFolders = false
    /// How news arrive.
    public var feed: Feed
    /// How long the change feed, listings and searches may not show a change that was already answered;
    /// a question for one item always shows it.
    public var lag: Duration = .zero
    /// How often to ask for news when the settings do not say.
    public var pollInterval: Duration
    /// The most operations that change the tree under way at once for this account, or batches of
    /// them; how many requests that are is up to the transport.
    public var maximumWritesInFlight: Int
    /// The most bytes of content that are worth reading in one range request.
    public var largestRangeRequest: Int64
    /// The most range requests of one file that are worth making before their bytes are asked for; fewer
    /// where a request that a program waits for would stand in line behind them.
    public var rangesAhead = 24

    /// Traits with what every service must say; the rest has cautious defaults: no batch forms, no
    /// client ids, nothing settable, polling every minute, 4 writes in flight.
    public init(
        names: NameRules,
        hashAlgorithm: HashAlgorithm,
        largestSimpleUpload: Int64,
        largestFile: Int64,
        uploadPartMultiple: Int64,
        uploadPartSize: Int64
    ) {
        self.names = names
        self.hashAlgorithm = hashAlgorithm
        self.largestSimpleUpload = largestSimpleUpload
        self.largestFile = largestFile
        self.uploadPartMultiple = uploadPartMultiple
        self.uploadPartSize = uploadPartSize
        replaceIsAtomic = false
        refusesTakenNames = true
        takesClientIDs = false
        setsModifiedTime = false
        setsFolderModifiedTime = false
        timeResolution = .seconds
        setsDescription = false
        copiesFiles = false
        caseRenameNeedsDetour = false
        moveChangesRevision = false
        feed = .poll
        pollInterval = .seconds(60)
        maximumWritesInFlight = 4
        largestRangeRequest = 16 << 20
    }
}
