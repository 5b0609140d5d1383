// Module OortFileSystem.
