import GRDB

extension Catalog {
    /// The steps that bring a database of any age to today's form.
    ///
    /// A step, once released, is never changed: add another.
    static var migrations: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("three trees") { database in
            try database.execute(sql: schema)
        }
        migrator.registerMigration("items to ask for") { database in
            try database.execute(sql: itemsToAskFor)
        }
        migrator.registerMigration("staged contents are found, and may be damaged") { database in
            try database.execute(
                sql: "CREATE INDEX content_by_staging ON content(id) WHERE is_staged = 1"
            )
            // What was lost of staged content, for people; such content is not sent.
            try database.execute(sql: "ALTER TABLE content ADD COLUMN damage TEXT")
        }
        migrator.registerMigration("items shown under another name") { database in
            try database.execute(
                sql: """
                    CREATE INDEX node_by_service_name ON node(parent)
                        WHERE service_name IS NOT NULL
                    """
            )
        }
        migrator.registerMigration("moved folders that are told again") { database in
            try database.execute(sql: foldersToldAgain)
        }
        migrator.registerMigration("folders that come back") { database in
            // How often a folder was removed here: after that, the same inode is another folder.
            try database.execute(
                sql: "ALTER TABLE node ADD COLUMN generation INTEGER NOT NULL DEFAULT 0"
            )
        }
        migrator.registerMigration("names shown with a number") { database in
            try database.execute(
                sql: """
                    -- While an item is shown with a number: the key of the name without it.
                    ALTER TABLE node ADD COLUMN plain_key TEXT;
                    CREATE INDEX node_by_plain_key ON node(account) WHERE plain_key IS NOT NULL;
                    """
            )
            try CatalogTransaction(database: database, writers: WriterRegistry())
                .findNumberedNames()
        }
        migrator.registerMigration("upload sessions of what was sent") { database in
            // Older ones begin anew: which bytes they are of is not known.
            try database.execute(
                sql: """
                    UPDATE motion SET session_state = NULL;
                    ALTER TABLE motion DROP COLUMN session_content;
                    -- The hash of the content that the session sends.
                    ALTER TABLE motion ADD COLUMN session_hash TEXT;
                    """
            )
        }
        migrator.registerMigration("where unknown items to ask for were told to lie") { database in
            try database.execute(
                sql: """
                    -- Null for what is here; the folder as in motion.remote_parent_id.
                    ALTER TABLE unsure ADD COLUMN told_name TEXT;
                    ALTER TABLE unsure ADD COLUMN told_parent_id TEXT;
                    """
            )
        }
        migrator.registerMigration("numbers of one folder") { database in
            try database.execute(
                sql: """
                    CREATE INDEX node_by_plain_name ON node(parent, plain_key)
                        WHERE plain_key IS NOT NULL
                    """
            )
        }
        migrator.registerMigration("stamps of the contents' folders") { database in
            try database.execute(sql: "CREATE TABLE stamp (value TEXT PRIMARY KEY) STRICT")
        }
        migrator.registerMigration("whose a link file is") { database in
            try database.execute(
                sql: """
                    -- Whether somebody else made a file's content or owns it, as far as is known.
                    ALTER TABLE node ADD COLUMN is_strangers INTEGER NOT NULL DEFAULT 0;
                    -- What came from the service is somebody else's until the service is asked.
                    UPDATE node SET is_strangers = 1
                        WHERE remote_id IS NOT NULL AND born_s IS NULL;
                    -- Under which policy the link files were looked at; NULL before the first time.
                    ALTER TABLE account ADD COLUMN links TEXT;
                    """
            )
        }
        migrator.registerMigration("what an enumeration did not name is found") { database in
            try database.execute(
                sql: """
                    CREATE INDEX node_by_enumeration ON node(account, enumeration)
                        WHERE remote_id IS NOT NULL
                    """
            )
        }
        migrator.registerMigration("how many requests a service bears") { database in
            try database.execute(sql: "ALTER TABLE account ADD COLUMN request_limit INTEGER")
        }
        migrator.registerMigration("where conflicts lie") { database in
            try database.execute(
                sql: """
                    -- Where the two files of a conflict were left; it is over when either is gone.
                    ALTER TABLE conflict ADD COLUMN copy_parent INTEGER;
                    ALTER TABLE conflict ADD COLUMN copy_key TEXT;
                    ALTER TABLE conflict ADD COLUMN original_parent INTEGER;
                    ALTER TABLE conflict ADD COLUMN original_key TEXT;
                    -- When it was found to be over; the row stays as long as the copy.
                    ALTER TABLE conflict ADD COLUMN ended_ms INTEGER;
                    UPDATE conflict SET
                        (copy_parent, copy_key) =
                            (SELECT parent, name_key FROM node WHERE node.inode = conflict.inode),
                        (original_parent, original_key) =
                            (SELECT parent, name_key FROM node WHERE node.inode = conflict.original);
                    """
            )
        }
        migrator.registerMigration("names that are searched") { database in
            try database.execute(sql: searchSchema)
        }
        addPins(to: &migrator)
        migrator.registerMigration("details without what columns have") { database in
            // Old rows are read as they are (`StoredItem.read`): rewriting a million of them would delay
            // the mount.
            try database.execute(
                sql: """
                    DROP INDEX node_by_hash;
                    -- 32 bits of it, in the hex of what tells contents apart; the row has the rest.
                    CREATE INDEX node_by_hash ON node(substr(hash, -8)) WHERE hash IS NOT NULL;
                    """
            )
        }
        addTrashed(to: &migrator)
        migrator.registerMigration("what stays here by rules") { database in
            try database.execute(
                sql: """
                    -- Whether it stays here by rules; means nothing of what has a remote_id.
                    ALTER TABLE node ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
                    CREATE INDEX node_by_held ON node(account) WHERE held = 1;
                    -- The rules by which `held` was found, as one text.
                    ALTER TABLE account ADD COLUMN ignored TEXT;
                    """
            )
        }
        migrator.registerMigration("whose an item is and who changed it") { database in
            // Older versions take these letters in `details` for damage. Each account is enumerated once
            // more, since services report unchanged items to an enumeration only.
            try database.execute(sql: "UPDATE account SET cursor = NULL")
        }
        migrator.registerMigration("what is searched by what it is for") { database in
            // The index is built while the account is mounted.
            try database.execute(sql: searchedKinds)
        }
        migrator.registerMigration("what contents are made of") { database in
            try database.execute(
                sql: """
                    CREATE INDEX node_by_content_item ON node(account, content_item)
                        WHERE content_item IS NOT NULL;
                    CREATE INDEX content_by_base ON content(account, base_item)
                        WHERE base_item IS NOT NULL;
                    """
            )
        }
        migrator.registerMigration("tags") { database in
            // What the index has stays: an item without tags has the words that it had.
            try database.execute(sql: searchedTags)
        }
        migrator.registerMigration("where what stays here was when rules held it") { database in
            try database.execute(
                sql: """
                    -- The path in the account at which rules held it; NULL for what lies in a held folder,
                    -- and for what an older version held.
                    ALTER TABLE node ADD COLUMN held_at TEXT;
                    """
            )
        }
        migrator.registerMigration("what was answered of late") { database in
            try database.execute(sql: answers)
            try database.execute(
                sql: """
                    -- When the enumeration under way began, in milliseconds since 1970; NULL if none is.
                    ALTER TABLE account ADD COLUMN enumeration_began_ms INTEGER
                    """
            )
        }
        return migrator
    }

    /// Items of which a service whose answers about many items lag has answered, by itself or in its feed, with the
    /// moment of that.
    private static let answers = """
        CREATE TABLE answered (
            account INTEGER NOT NULL,
            remote_id TEXT NOT NULL,
            is_feeds INTEGER NOT NULL,
            at_ms INTEGER NOT NULL,
            PRIMARY KEY (account, remote_id, is_feeds)
        ) STRICT, WITHOUT ROWID;
        """

    /// Folders that we moved at a service that reports places by path, until its feed reports them: it will
    /// report them with everything below.
    private static let foldersToldAgain = """
        CREATE TABLE told_again (
            inode INTEGER PRIMARY KEY,
            account INTEGER NOT NULL
        ) STRICT;
        """

    /// Items of which the service reported something that may be older than our own change: what it has now
    /// is known only when it was asked for by itself, and has to be asked for after a restart, too.
    private static let itemsToAskFor = """
        CREATE TABLE unsure (
            account INTEGER NOT NULL,
            remote_id TEXT NOT NULL,
            PRIMARY KEY (account, remote_id)
        ) STRICT, WITHOUT ROWID;
        """

    /// `node` is the local tree.
    ///
    /// An item that is clean (remote = synced = local) has no row in `motion`; for an item in
    /// motion that row holds the synced base and, where it differs from the base, the newest remote
    /// observation.
    private static let schema = """
        CREATE TABLE account (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            name TEXT NOT NULL UNIQUE,
            service TEXT NOT NULL,
            identity TEXT,
            display_name TEXT,
            email TEXT,
            root INTEGER NOT NULL,
            root_id TEXT,
            comparison TEXT NOT NULL,
            allows_duplicates INTEGER NOT NULL,
            allows_slash INTEGER NOT NULL,
            cursor TEXT,
            enumerated INTEGER NOT NULL DEFAULT 0,
            enumeration INTEGER NOT NULL DEFAULT 0,
            quota_used INTEGER,
            quota_total INTEGER,
            trouble TEXT
        ) STRICT;

        CREATE TABLE node (
            inode INTEGER PRIMARY KEY AUTOINCREMENT,
            account INTEGER NOT NULL,
            parent INTEGER,
            name TEXT NOT NULL,
            name_key TEXT NOT NULL,
            service_name TEXT,
            kind INTEGER NOT NULL,
            size INTEGER NOT NULL DEFAULT 0,
            modified_s INTEGER NOT NULL DEFAULT 0,
            modified_ns INTEGER NOT NULL DEFAULT 0,
            changed_s INTEGER NOT NULL DEFAULT 0,
            changed_ns INTEGER NOT NULL DEFAULT 0,
            accessed_s INTEGER,
            accessed_ns INTEGER,
            created_s INTEGER,
            created_ns INTEGER,
            mode INTEGER,
            owner INTEGER,
            grp INTEGER,
            remote_id TEXT,
            revision TEXT,
            content_item TEXT,
            hash TEXT,
            staged INTEGER,
            target TEXT,
            permissions INTEGER NOT NULL DEFAULT 15,
            listed INTEGER NOT NULL DEFAULT 0,
            description TEXT,
            mime_type TEXT,
            born_s INTEGER,
            -- What the service said and no other column has (`ItemDetails`).
            details TEXT,
            -- The enumeration that named the item last.
            enumeration INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        -- Also serves the listing of a folder in inode order: SQLite appends the row id.
        CREATE INDEX node_by_parent ON node(parent) WHERE parent IS NOT NULL;
        CREATE UNIQUE INDEX node_by_name ON node(parent, name_key) WHERE parent IS NOT NULL;
        CREATE UNIQUE INDEX node_by_remote_id ON node(account, remote_id)
            WHERE remote_id IS NOT NULL;
        CREATE INDEX node_by_hash ON node(account, hash) WHERE hash IS NOT NULL;
        CREATE INDEX node_by_staged ON node(staged) WHERE staged IS NOT NULL;

        CREATE TABLE motion (
            inode INTEGER PRIMARY KEY,
            account INTEGER NOT NULL,
            -- The last local change, milliseconds since 1970.
            changed_ms INTEGER NOT NULL,
            -- The synced base; synced_parent is null when the sides never agreed on the item.
            synced_parent INTEGER,
            synced_name TEXT,
            synced_revision TEXT,
            synced_hash TEXT,
            synced_size INTEGER,
            synced_modified_s INTEGER,
            synced_modified_ns INTEGER,
            synced_description TEXT,
            -- The newest remote observation: 0 as the base, 1 present, 2 gone, 3 may be gone (a
            -- removal by path, or of a folder that was asked for: a feed run's end decides).
            remote_state INTEGER NOT NULL DEFAULT 0,
            remote_parent_id TEXT,
            -- The whole canonical item, JSON, when remote_state is 1.
            remote_item TEXT,
            -- How the push goes.
            attempts INTEGER NOT NULL DEFAULT 0,
            error_kind TEXT,
            error_detail TEXT,
            next_try_ms INTEGER NOT NULL DEFAULT 0,
            session_state TEXT,
            session_bytes INTEGER,
            session_expires_s INTEGER,
            -- The content that the session carries.
            session_content INTEGER,
            reserved_id TEXT,
            -- What was last asked of the service and not answered, JSON.
            intent TEXT
        ) STRICT;
        CREATE INDEX motion_by_account ON motion(account, changed_ms);
        CREATE INDEX motion_by_intent ON motion(account) WHERE intent IS NOT NULL;
        CREATE INDEX motion_by_synced_place ON motion(synced_parent, synced_name)
            WHERE synced_parent IS NOT NULL;
        CREATE INDEX motion_by_remote_parent ON motion(account, remote_parent_id)
            WHERE remote_parent_id IS NOT NULL;

        CREATE TABLE content (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            account INTEGER NOT NULL,
            -- Cached content: of which item and revision. Null for staged content.
            item TEXT,
            revision TEXT,
            -- Staged content: the item and revision that it lies over. Null without a base.
            base_item TEXT,
            base_revision TEXT,
            base_size INTEGER NOT NULL DEFAULT 0,
            size INTEGER NOT NULL,
            hash TEXT,
            is_staged INTEGER NOT NULL,
            -- Staged content that a program has open for writing: recovered at start.
            is_open INTEGER NOT NULL DEFAULT 0,
            is_complete INTEGER NOT NULL DEFAULT 0,
            is_pinned INTEGER NOT NULL DEFAULT 0,
            present BLOB,
            bytes_on_disk INTEGER NOT NULL DEFAULT 0,
            used_ms INTEGER NOT NULL
        ) STRICT;
        CREATE UNIQUE INDEX content_by_revision ON content(account, item, revision)
            WHERE item IS NOT NULL;
        CREATE INDEX content_by_use ON content(used_ms) WHERE is_staged = 0;

        CREATE TABLE xattr (
            inode INTEGER NOT NULL,
            name TEXT NOT NULL,
            value BLOB NOT NULL,
            PRIMARY KEY (inode, name)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE conflict (
            inode INTEGER PRIMARY KEY,
            account INTEGER NOT NULL,
            original INTEGER NOT NULL,
            made_ms INTEGER NOT NULL
        ) STRICT;

        INSERT INTO node (inode, account, parent, name, name_key, kind, mode, listed)
            VALUES (1, 0, NULL, '', '', 0, 493, 1);
        """
}
