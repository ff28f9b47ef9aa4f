"""`python -m waterjar`: the command line where its script is not on the path."""

from waterjar.cli.main import main

if __name__ == "__main__":
    main()
