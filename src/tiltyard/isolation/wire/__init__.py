"""The wire between judge and guest: `frames` says what they send, `channel` how."""
