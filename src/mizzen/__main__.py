"""`python -m mizzen`: the command line, for whoever starts Mizzen with an interpreter of their choice."""

from mizzen.cli.app import main

if __name__ == "__main__":
    main(prog_name="mizzen")
