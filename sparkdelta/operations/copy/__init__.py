"""CLONE, CONVERT and RESTORE: tables made of other tables or of their earlier versions."""
