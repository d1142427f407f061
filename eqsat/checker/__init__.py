"""The rule checker: rules come in, random instances of them are drawn and both sides are computed; a verdict on each goes out."""
