"""The problems, as data, and the one form in which all solutions come."""
