"""What tests of several folders share. Not tests, and not part of the product."""
