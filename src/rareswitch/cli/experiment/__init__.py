"""``rareswitch experiment COMMAND``: the commands of this family."""
