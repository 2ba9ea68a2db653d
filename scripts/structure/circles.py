"""Circles in a graph that maps each node to the set of those it points to."""

import collections


def circles_of(edges):
    """The strongly connected components of more than one node (Tarjan), without recursion limits for this size."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for neighbour in sorted(edges.get(node, ())):
            if neighbour not in index:
                visit(neighbour)
                low[node] = min(low[node], low[neighbour])
            elif neighbour in on_stack:
                low[node] = min(low[node], index[neighbour])
        if low[node] == index[node]:
            component = set()
            while not component or node not in component:
                component.add(stack.pop())
            on_stack.difference_update(component)
            if len(component) > 1:
                found.append(component)

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


def way_around(edges, component):
    """A shortest way from the component's first node back to it, as 'a -> b -> a'."""
    start = min(component)
    came_from, queue = {}, collections.deque([start])
    while queue:
        node = queue.popleft()
        for neighbour in sorted(edges[node] & component):
            if neighbour == start:
                way = [start, node]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return " -> ".join(reversed(way))
            if neighbour not in came_from:
                came_from[neighbour] = node
                queue.append(neighbour)
    raise AssertionError("not a circle")
