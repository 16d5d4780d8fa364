"""Predicates: parsers of conditions, as SQL text or Columns, into trees."""
