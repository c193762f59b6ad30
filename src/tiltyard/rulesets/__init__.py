"""The shipped rulesets as TOML files, and the code that reads and checks them."""
