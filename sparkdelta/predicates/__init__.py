"""Parsers of filter conditions, as SQL text or a Column, into the tree of `protocol.predicates`.

All conditions are parsed here. A part that a parser does not support becomes `Unusable`.
"""
