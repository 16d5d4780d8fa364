"""The protocol's rules over tables of actions and rows: `DataFrame -> DataFrame`, lazy.

No session, no action, no storage. Nothing here depends on a setting of the session: formats, zones
and null rules are spelled out, and whatever cannot be parsed is an error or a null by name, never
by luck.
"""
