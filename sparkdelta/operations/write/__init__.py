"""CREATE, INSERT, UPDATE, DELETE and TRUNCATE: new rows, changed rows, removed rows."""
