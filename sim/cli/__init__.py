"""The command line: ``simrun``. Every command is one file; what it needs is imported when it runs."""

import sys

from sim.cli.parser import parse


def main(arguments: list[str] | None = None) -> int:
    """Runs ``simrun`` with the given arguments (default: those of the process); returns the exit code.

    0 done, 1 some points failed, 2 bad configuration or usage, 3 a ceiling or engine-agreement check failed,
    130 interrupted and resumable.
    """
    options = parse(sys.argv[1:] if arguments is None else arguments)
    try:
        return options.run(options)
    except KeyboardInterrupt:
        print("simrun: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has seen enough
        sys.stderr.close()
        return 0
