"""Drawing: random legal instances of a rule's left side."""
