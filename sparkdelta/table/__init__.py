"""Tables: reading their logs and rows, and committing to them."""
