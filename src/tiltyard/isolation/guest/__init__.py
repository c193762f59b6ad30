"""The side inside the jail: everything here runs in the process of a guest."""
