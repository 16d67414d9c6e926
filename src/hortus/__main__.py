"""`python -m hortus` is the same program as `hortus`."""

from hortus.cli.main import main

if __name__ == "__main__":
    main()
