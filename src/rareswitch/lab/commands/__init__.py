"""The commands of the laboratory; ``rareswitch.cli.commands`` lists them."""
