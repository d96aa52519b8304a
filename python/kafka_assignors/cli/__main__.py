"""`python -m kafka_assignors.cli`."""

from kafka_assignors.cli import main

if __name__ == "__main__":
    main()
