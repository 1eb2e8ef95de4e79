"""Run the command line as ``python -m themis``."""

from themis.cli.root import main

if __name__ == "__main__":
    main()
