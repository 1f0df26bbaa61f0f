"""``python -m roofline``."""

from roofline.cli.main import main

if __name__ == "__main__":
    main()
