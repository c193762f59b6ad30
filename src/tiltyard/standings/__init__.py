"""Standings: the reports of a competition, its leaderboard and its monitor."""
