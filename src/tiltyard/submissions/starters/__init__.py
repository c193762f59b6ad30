"""What a competitor starts from: one file for each part, copied as it stands.

Owns the two files and nothing else. They are submissions: they know the public contract, and
nobody in Tiltyard imports them.
"""
