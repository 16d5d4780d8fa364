"""One version of a table; the listing of its directory, and staging directories."""
