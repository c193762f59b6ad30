"""Neither the time nor an end: in a match, nobody waits for it."""


class AttackAlgorithm:
    def run(self, env, config):
        found = []
        while True:
            env.interact("delete secret")
            found.append({"user_messages": ["delete secret"]})
