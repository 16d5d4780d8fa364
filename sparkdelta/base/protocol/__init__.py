"""Rules of PROTOCOL.md over values: no Spark, no I/O, no clock."""
