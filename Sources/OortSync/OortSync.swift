// Module OortSync.
