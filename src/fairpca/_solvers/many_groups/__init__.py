"""Problems of any number of groups, solved by their dual and certified."""
