"""Parameters: the kinds of values that public functions take, checked, and sizes in bytes as people write them."""
