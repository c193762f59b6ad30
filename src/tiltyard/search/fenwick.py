"""A Fenwick tree: draw by integer weights, and change a weight, in O(log n)."""


class Fenwick:
    """Weights by position. Positions are appended and never removed."""

    __slots__ = ("_tree", "_weights", "total")

    def __init__(self) -> None:
        self._tree = [0]
        self._weights: list[int] = []
        self.total = 0

    def __len__(self) -> int:
        return len(self._weights)

    def weight(self, position: int) -> int:
        return self._weights[position]

    def append(self, weight: int) -> None:
        self._weights.append(weight)
        at = len(self._weights)
        below = at - 1
        stop = at - (at & -at)
        value = weight
        while below > stop:
            value += self._tree[below]
            below -= below & -below
        self._tree.append(value)
        self.total += weight

    def change(self, position: int, weight: int) -> None:
        delta = weight - self._weights[position]
        self._weights[position] = weight
        self.total += delta
        tree, size = self._tree, len(self._tree)
        at = position + 1
        while at < size:
            tree[at] += delta
            at += at & -at

    def find(self, point: int) -> int:
        """Return the position whose part of [0, total) contains the point."""
        if not 0 <= point < self.total:
            raise ValueError(f"{point} is not in [0, {self.total})")
        tree, size = self._tree, len(self._tree)
        at = 0
        step = 1 << (size - 1).bit_length()
        while step:
            ahead = at + step
            if ahead < size and tree[ahead] <= point:
                at = ahead
                point -= tree[ahead]
            step >>= 1
        return at
