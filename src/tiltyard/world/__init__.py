"""The sandboxed machine as a value: files, mail, web, shell, egress, and the ten tools over it."""
