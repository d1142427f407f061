"""The forms of terms that an e-graph has: which attributes occur together, and lists of which length.

The input is the columns of each term, as the law that derives its fact reads them. The output tells
whether some term suits a node of a left side. Most rules ask for a form that a graph lacks, such as
a Split in eight, and egglog takes longer to compile such a rule than to run it.
"""

from __future__ import annotations

from eqsat.language.query import Fixed, NodeAtom
from eqsat.terms.terms import Terms, attribute_key


class Present:
    """The forms of terms by signature. Forms are only ever added."""

    def __init__(self, terms: Terms) -> None:
        self.count = 0  # of all forms
        self._terms = terms
        # The handles of a term's attributes, and the number of items in its list.
        self._forms: dict[int, set[tuple[tuple[int, ...], int]]] = {}

    def note(self, index: int, columns: tuple[int, ...]) -> None:
        """Adds the form of a term: its attributes, then the facts of its inputs and of its list."""
        signature = self._terms.signatures[index]
        items = len(self._terms.chain(columns[-1])) if signature.rest else 0
        form = (columns[: len(signature.attributes)], items)
        forms = self._forms.setdefault(index, set())
        if form not in forms:
            forms.add(form)
            self.count += 1

    def has(self, atom: NodeAtom) -> bool:
        """Tells whether some term has the attributes and the number of items that a node asks for."""
        wanted: list[tuple[int, int]] = []
        for place, attribute in enumerate(atom.attributes):
            if isinstance(attribute, Fixed):
                handle = self._terms.attributes.find(attribute_key(attribute.value))
                if handle is None:
                    return False
                wanted.append((place, handle))
        listed = atom.signature.rest and not atom.view
        least = len(atom.items) if listed else 0
        forms = self._forms.get(self._terms.signature(atom.signature), ())
        return any(
            all(attributes[place] == handle for place, handle in wanted) and (items == least or (items > least and (not listed or atom.rest is not None)))
            for attributes, items in forms
        )
