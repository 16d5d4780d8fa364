"""Tables as sources of streaming queries."""
