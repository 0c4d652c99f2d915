"""What runs programs on the model, for the suites that hold it against rates."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def options_of_model(parser):
    """Adds the options that say how programs are built and run."""
    option = parser.add_argument
    option("--compiler", default=os.environ.get("IA64_CC", "ia64-linux-gnu-gcc"), metavar="CC",
           help="the cross-compiler (or set IA64_CC; default: %(default)s)")
    option("--emulator", default=f"{ROOT}/target/release/sidestep exec", metavar="COMMAND",
           help="what runs a program with --timing (default: this tree's `sidestep exec`)")
    option("--timing", default="itanium2", metavar="PROCESSOR", help="the model (default: %(default)s)")


def refuse(message):
    print(f"run: {message}", file=sys.stderr)
    sys.exit(2)


def command(words, **options):
    try:
        return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True, **options)
    except FileNotFoundError:
        refuse(f"{words[0]} is missing")
    except subprocess.CalledProcessError as error:
        refuse(f"{shlex.join(error.cmd)}: {error.stderr.strip()}")


def cycles(options, program, *arguments):
    emulator = shlex.split(options.emulator)
    done = command([*emulator, "--timing", options.timing, "--stats", program, *arguments])
    return int(re.search(r"(\d+)\s+CPU_CYCLES", done.stderr).group(1))
