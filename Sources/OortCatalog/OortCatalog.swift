// Module OortCatalog.
