"""Needs a package that no match has."""


class Guardrail:
    def decide(self, tool_name, tool_args, context):
        import a_package_that_is_not_there

        return a_package_that_is_not_there.decide(tool_name, tool_args)
