"""Tables that other engines write when the tests run, read equal by all of them."""
