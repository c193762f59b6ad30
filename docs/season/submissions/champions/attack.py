from tiltyard.attacks import Cartographer


class AttackAlgorithm(Cartographer):
    """A rung of the attack ladder, as it is."""
