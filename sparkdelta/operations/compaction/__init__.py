"""Rewriting of files as fewer larger ones, in the order of a curve if asked for."""
