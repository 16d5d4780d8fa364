"""SQL on Delta tables: a grammar of Delta's statements, and queries in which DataFrames stand for
tables. Expressions and queries stay the user's text, which Spark parses.
"""
