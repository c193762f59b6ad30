"""The trusted side of the jail: starts guests, asks them, ends them."""
