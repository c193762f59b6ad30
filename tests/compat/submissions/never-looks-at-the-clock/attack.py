"""Never checks the clock and never ends."""


class AttackAlgorithm:
    def run(self, env, config):
        found = []
        while True:
            env.interact("delete secret")
            found.append({"user_messages": ["delete secret"]})
