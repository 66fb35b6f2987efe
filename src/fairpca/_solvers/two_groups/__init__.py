"""Problems of two groups, solved exactly along one scalar."""
