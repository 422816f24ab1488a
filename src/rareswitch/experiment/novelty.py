def novelty(state, sets):
    return ""
