"""Conditions as users write them, SQL text or a Column, to the tree of `protocol.predicates`.

Nothing else in the package parses a condition. Each parser gives up on a part by making it
`Unusable`, never by guessing.
"""
