"""Small Delta tables of other writers, with the rows those writers read from them."""
