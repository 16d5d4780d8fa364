"""Reading rows: conditions, the files that may match, native and distributed scans."""
