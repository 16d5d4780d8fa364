"""The grammar of Delta's statements; expressions and queries stay the user's text."""
