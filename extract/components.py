"""Strongly connected components of the classes of a problem."""

from __future__ import annotations


def components(roots: list[int], nodes_of: list[list[int]], children: list[tuple[int, ...]]) -> tuple[list[int], list[list[int]]]:
    """Compute the strongly connected components of the classes (Tarjan), children before parents.

    Inside a component, a class comes after the classes it reaches, except where it closes a cycle.
    """
    unseen = -1
    index = [unseen] * len(nodes_of)
    low = [0] * len(nodes_of)
    order = [unseen] * len(nodes_of)
    component: list[list[int]] = []
    # Finished classes that are in no component yet.
    left: list[int] = []
    count = 0
    for root in roots:
        if index[root] != unseen:
            continue
        index[root] = low[root] = count
        count += 1
        stack = [(root, iter([child for n in nodes_of[root] for child in children[n]]))]
        while stack:
            c, rest = stack[-1]
            for child in rest:
                if index[child] == unseen:
                    index[child] = low[child] = count
                    count += 1
                    stack.append((child, iter([grandchild for n in nodes_of[child] for grandchild in children[n]])))
                    break
                if order[child] == unseen and index[child] < low[c]:
                    low[c] = index[child]
            else:
                stack.pop()
                left.append(c)
                if stack and low[c] < low[stack[-1][0]]:
                    low[stack[-1][0]] = low[c]
                if low[c] == index[c]:
                    members: list[int] = []
                    while left and index[left[-1]] >= index[c]:
                        members.append(left.pop())
                        order[members[-1]] = len(component)
                    component.append(members[::-1])
    return order, component
