public import OortModel

extension TrashFileSystem {
    // MARK: Attributes

    public func forget(_ inode: Inode, lookups: UInt64) {
        if TrashPlace(inode) == nil { files.forget(inode, lookups: lookups) }
    }

    public func absenceValidity(in folder: Inode) -> Duration {
        TrashPlace(folder) == nil ? files.absenceValidity(in: folder) : .zero
    }

    public func attributes(of inode: Inode, handle: FileHandle?) -> Outcome<Entry> {
        guard let place = TrashPlace(inode) else {
            return files.attributes(of: inode, handle: handle)
        }
        return .now { () throws(FileSystemError) in try entry(place) }
    }

    public func setAttributes(
        _ setting: AttributeSetting,
        of inode: Inode,
        handle: FileHandle?
    ) -> Outcome<Entry> {
        guard let place = TrashPlace(inode) else {
            return files.setAttributes(setting, of: inode, handle: handle)
        }
        return .now { () throws(FileSystemError) in
            guard case .note(let number) = place else { throw .notPermitted }
            guard let size = setting.size else { return try entry(place) }
            guard size >= 0 else { throw .invalid }
            guard size <= TrashNotes.longest else { throw .tooLarge }
            let changed = notes.change(number) { Self.resize(&$0, to: Int(size)) }
            guard let changed else { throw .notFound }
            return entry(changed)
        }
    }

    private static func resize(_ bytes: inout [UInt8], to size: Int) {
        if bytes.count > size {
            bytes.removeLast(bytes.count - size)
        } else {
            bytes += Array(repeating: 0, count: size - bytes.count)
        }
    }

    public func checkAccess(of inode: Inode, writes: Bool) -> Outcome<Void> {
        TrashPlace(inode) == nil ? files.checkAccess(of: inode, writes: writes) : .now(.success(()))
    }

    public func parent(of folder: Inode) -> Outcome<Inode> {
        TrashPlace(folder).map { .now(.success($0.parent)) } ?? files.parent(of: folder)
    }

    public func readLink(_ inode: Inode) -> Outcome<String> {
        TrashPlace(inode) == nil ? files.readLink(inode) : .failure(.invalid)
    }

    public func room(of inode: Inode) -> Outcome<FileSystemRoom> {
        files.room(of: TrashPlace(inode) == nil ? inode : .root)
    }

    // MARK: Making and removing

    public func create(
        _ name: String,
        in folder: Inode,
        permissions: UInt16,
        caller: Caller,
        mode: OpenMode,
        isExclusive: Bool
    ) -> Outcome<(Entry, Opened)> {
        guard let place = TrashPlace(folder) else {
            return files.create(
                name,
                in: folder,
                permissions: permissions,
                caller: caller,
                mode: mode,
                isExclusive: isExclusive
            )
        }
        guard place == .info else { return .failure(.notPermitted) }
        return .now { () throws(FileSystemError) in
            guard name.utf8.count <= 255 else { throw .nameTooLong }
            do throws(FileSystemError) {
                let there = try lookup(name, in: folder).nowValue()
                guard !isExclusive else { throw .exists }
                return (there, try opened(there.attributes.inode, mode))
            } catch {
                guard error == .notFound else { throw error }
            }
            let note = notes.make(name)
            return (entry(note), opened(.note(note.number)))
        }
    }

    public func makeFolder(
        _ name: String,
        in folder: Inode,
        permissions: UInt16,
        caller: Caller
    ) -> Outcome<Entry> {
        guard TrashPlace(folder) != nil else {
            return files.makeFolder(name, in: folder, permissions: permissions, caller: caller)
        }
        return .failure(TrashPlace(folder) == .top && name == "expunged" ? .exists : .notPermitted)
    }

    public func makeSpecial(
        _ name: String,
        kind: SpecialKind,
        in folder: Inode,
        permissions: UInt16,
        caller: Caller
    ) -> Outcome<Entry> {
        guard TrashPlace(folder) != nil else {
            return files.makeSpecial(
                name,
                kind: kind,
                in: folder,
                permissions: permissions,
                caller: caller
            )
        }
        return .failure(.notPermitted)
    }

    public func makeLink(
        _ name: String,
        to target: String,
        in folder: Inode,
        caller: Caller
    ) -> Outcome<Entry> {
        guard TrashPlace(folder) != nil else {
            return files.makeLink(name, to: target, in: folder, caller: caller)
        }
        return .failure(.notPermitted)
    }

    public func unlink(_ name: String, in folder: Inode) -> Outcome<Void> {
        guard let place = TrashPlace(folder) else { return files.unlink(name, in: folder) }
        guard place == .info || place == .files else { return .failure(.notPermitted) }
        return .now { () throws(FileSystemError) in
            if place == .files { return try hide(name, isFolder: false) }
            if notes.remove(name) { return }
            _ = try lookup(name, in: folder).nowValue()
            throw .notPermitted
        }
    }

    public func removeFolder(_ name: String, in folder: Inode) -> Outcome<Void> {
        guard let place = TrashPlace(folder) else { return files.removeFolder(name, in: folder) }
        guard place == .files else { return .failure(.notPermitted) }
        return .now { () throws(FileSystemError) in try hide(name, isFolder: true) }
    }

    // MARK: Content

    private func opened(_ place: TrashPlace) -> Opened {
        Opened(handle: notes.open(place), keepsCache: false, isDirect: true)
    }

    private func opened(_ inode: Inode, _ mode: OpenMode) throws(FileSystemError) -> Opened {
        guard let place = TrashPlace(inode) else { throw .badHandle }
        _ = try bytes(of: place)
        guard mode.writes || mode.truncates else { return opened(place) }
        guard case .note(let number) = place else { throw .noPermission }
        if mode.truncates { _ = notes.change(number) { $0 = [] } }
        return opened(place)
    }

    public func open(_ inode: Inode, mode: OpenMode) -> Outcome<Opened> {
        guard TrashPlace(inode) != nil else { return files.open(inode, mode: mode) }
        return .now { () throws(FileSystemError) in try opened(inode, mode) }
    }

    public func read(_ handle: FileHandle, at offset: Int64, count: Int) -> Outcome<ReadAnswer> {
        guard TrashNotes.isHandle(handle) else {
            return files.read(handle, at: offset, count: count)
        }
        return .now { () throws(FileSystemError) in
            guard let place = notes.place(of: handle) else { throw .badHandle }
            let bytes = try bytes(of: place)
            guard offset >= 0, offset < bytes.count else { return .end }
            return .bytes(Array(bytes[Int(offset)...].prefix(count)))
        }
    }

    public func write(
        _ handle: FileHandle,
        _ bytes: RawSpan,
        at offset: Int64
    ) -> Outcome<Int> {
        guard TrashNotes.isHandle(handle) else { return files.write(handle, bytes, at: offset) }
        let count = bytes.byteCount
        let end = offset.addingReportingOverflow(Int64(count))
        guard case .note(let number)? = notes.place(of: handle) else { return .failure(.badHandle) }
        guard offset >= 0, !end.overflow, end.partialValue <= TrashNotes.longest else {
            return .failure(.tooLarge)
        }
        let written = unsafe bytes.withUnsafeBytes { unsafe Array($0) }
        let changed = notes.change(number) { content in
            if content.count < Int(end.partialValue) {
                Self.resize(&content, to: Int(end.partialValue))
            }
            content.replaceSubrange(Int(offset)..<Int(end.partialValue), with: written)
        }
        return changed == nil ? .failure(.revisionGone) : .now(.success(count))
    }

    public func flush(_ handle: FileHandle) -> Outcome<Void> {
        TrashNotes.isHandle(handle) ? .now(.success(())) : files.flush(handle)
    }

    public func synchronise(_ handle: FileHandle) -> Outcome<Void> {
        TrashNotes.isHandle(handle) ? .now(.success(())) : files.synchronise(handle)
    }

    public func synchroniseFolder(_ folder: Inode) -> Outcome<Void> {
        TrashPlace(folder) == nil ? files.synchroniseFolder(folder) : .now(.success(()))
    }

    public func release(_ handle: FileHandle) {
        if TrashNotes.isHandle(handle) { notes.close(handle) } else { files.release(handle) }
    }

    public func copyRange(
        from source: FileHandle,
        at sourceOffset: Int64,
        to target: FileHandle,
        at targetOffset: Int64,
        count: Int64
    ) -> Outcome<Int64> {
        guard !TrashNotes.isHandle(source), !TrashNotes.isHandle(target) else {
            return .failure(.notSupported)
        }
        return files.copyRange(
            from: source,
            at: sourceOffset,
            to: target,
            at: targetOffset,
            count: count
        )
    }

    public func seek(
        _ handle: FileHandle,
        to target: SeekTarget,
        from offset: Int64
    ) -> Outcome<Int64> {
        guard TrashNotes.isHandle(handle) else {
            return files.seek(handle, to: target, from: offset)
        }
        return .now { () throws(FileSystemError) in
            guard let place = notes.place(of: handle) else { throw .badHandle }
            let size = Int64(try bytes(of: place).count)
            guard (0..<size).contains(offset) else { throw .noMoreData }
            return target == .data ? offset : size
        }
    }

    public func allocate(
        _ handle: FileHandle,
        range: Range<Int64>,
        extends: Bool
    ) -> Outcome<Void> {
        TrashNotes.isHandle(handle)
            ? .failure(.notSupported)
            : files.allocate(handle, range: range, extends: extends)
    }

    // MARK: Extended attributes

    public func extendedAttribute(_ name: String, of inode: Inode) -> Outcome<[UInt8]> {
        guard TrashPlace(inode) != nil else { return files.extendedAttribute(name, of: inode) }
        return .failure(name.begins(with: "user.") ? .noAttribute : .notSupported)
    }

    public func extendedAttributes(of inode: Inode) -> Outcome<[String]> {
        TrashPlace(inode) == nil ? files.extendedAttributes(of: inode) : .now(.success([]))
    }

    public func setExtendedAttribute(
        _ name: String,
        to value: [UInt8],
        of inode: Inode,
        mustExist: Bool?
    ) -> Outcome<Void> {
        guard TrashPlace(inode) != nil else {
            return files.setExtendedAttribute(name, to: value, of: inode, mustExist: mustExist)
        }
        return .failure(.notSupported)
    }

    public func removeExtendedAttribute(_ name: String, of inode: Inode) -> Outcome<Void> {
        guard TrashPlace(inode) != nil else {
            return files.removeExtendedAttribute(name, of: inode)
        }
        return .failure(.notSupported)
    }
}

extension Outcome {
    /// The answer of an operation that is always local.
    fileprivate func nowValue() throws(FileSystemError) -> Value {
        guard case .now(let result) = self else { throw .failed(detail: "an answer that waits") }
        return try result.get()
    }
}
