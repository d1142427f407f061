"""Control flow, calls, sequences and optionals as plain nodes."""
