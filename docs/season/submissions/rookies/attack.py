from tiltyard.attacks import SimplePrompts


class AttackAlgorithm(SimplePrompts):
    """A rung of the attack ladder, as it is."""
