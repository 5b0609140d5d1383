// Module OortContentStore.
