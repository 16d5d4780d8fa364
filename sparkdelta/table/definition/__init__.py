"""The protocol, metadata and domains of a table, and how a commit changes them."""
