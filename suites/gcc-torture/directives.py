"""What the DejaGnu directives of a GCC test say for the target ia64-linux.

Interface: `read(source, level)` answers a `Verdict`: the options the test adds to the compiler's command line,
or the reason why GCC itself would not run it here.

Rules: a directive that is not known is an error, never ignored: a test must not be built with fewer options than
GCC gives it. Directives that only concern messages of the compiler (`dg-warning`, `dg-prune-output`, ...) are
listed as such. An expected failure (`dg-xfail-if`) changes nothing: if it names this target the test belongs in
the exclusion list, with a reason.

Limits: tests with more than one source file (`dg-additional-sources`) and tests that scan the compiler's output
are refused; the C execution tests have none.
"""

import fnmatch
import re
from dataclasses import dataclass, field
from pathlib import Path

TARGET = "ia64-unknown-linux-gnu"

# Effective targets of GCC's testsuite (gcc/testsuite/lib/target-supports.exp) as they come out for ia64-linux with
# glibc and a compiler configured without decimal floating point.
EFFECTIVE_TARGETS = {
    "alloca": True,
    "c99_runtime": True,
    "coldfire_fpu": False,
    "dfp": False,
    "double64": True,
    "double64plus": True,
    "fileio": True,
    "fpic": True,
    "freestanding": False,
    "hard_float": True,
    "ia32": False,
    "ilp32": False,
    "indirect_jumps": True,
    "int128": True,
    "int32": True,
    "int32plus": True,
    "label_values": True,
    "longlong64": True,
    "lp64": True,
    "mmap": True,
    "newlib_nano_io": False,
    "return_address": True,
    "short_eq_int": False,
    "signal": True,
    "size32plus": True,
    "stdint_types": True,
    "ti_c67x": False,
    "trampolines": True,
    "untyped_assembly": True,
    "unwrapped": True,
    "vxworks_kernel": False,
}

# `dg-add-options FEATURE`: nothing is added for this target.
FEATURES_WITHOUT_OPTIONS = {"ieee", "stack_size"}

# Directives about the compiler's messages, which a run does not look at.
MESSAGES_ONLY = {
    "dg-bogus", "dg-error", "dg-message", "dg-prune-output", "dg-warning", "dg-excess-errors", "dg-timeout-factor",
}

# Requirements met by every ia64-linux system: symbol aliases, weak symbols, a stack of any size asked for.
ALWAYS_MET = {"dg-require-alias", "dg-require-weak", "dg-require-stack-size", "dg-require-ifunc",
              "dg-require-visibility"}

EXPECTED_FAILURE = {"dg-xfail-if", "dg-xfail-run-if"}


class DirectiveError(Exception):
    """A directive this module does not know how to evaluate."""


@dataclass
class Verdict:
    """The outcome of a test's directives: its extra options, or why it is not run."""

    options: list = field(default_factory=list)
    skipped: str | None = None


def words(text):
    """Splits a Tcl list into its elements; braces and quotes group."""
    elements, index = [], 0
    while index < len(text):
        if text[index].isspace():
            index += 1
            continue
        start = index
        if text[index] == "{":
            depth = 0
            while index < len(text):
                depth += {"{": 1, "}": -1}.get(text[index], 0)
                index += 1
                if depth == 0:
                    break
            else:
                raise DirectiveError(f"unbalanced braces in `{text.strip()}`")
            elements.append(text[start + 1:index - 1])
        elif text[index] == '"':
            index += 1
            while index < len(text) and text[index] != '"':
                index += 2 if text[index] == "\\" else 1
            elements.append(text[start + 1:index])
            index += 1
        else:
            while index < len(text) and not text[index].isspace():
                index += 1
            elements.append(text[start:index])
    return elements


def effective_target(name):
    """Whether ia64-linux has the named effective target."""
    if name not in EFFECTIVE_TARGETS:
        raise DirectiveError(f"effective target `{name}` is not in the table of directives.py")
    return EFFECTIVE_TARGETS[name]


def selects(selector):
    """Evaluates a target selector: triplet patterns, effective targets, `!`, `&&`, `||`, nested braces."""
    terms = words(selector)
    if len(terms) == 1 and "*" not in terms[0] and "-" not in terms[0] and " " in terms[0]:
        return selects(terms[0])
    if not terms:
        return False
    if terms[0] == "!":
        return not selects(selector.strip()[1:])
    for operator, combine in (("||", any), ("&&", all)):
        if operator in terms:
            sides, side = [], []
            for term in terms + [operator]:
                if term == operator:
                    sides.append(" ".join(braced(part) for part in side))
                    side = []
                else:
                    side.append(term)
            return combine([selects(part) for part in sides])
    return any(selects_one(term) for term in terms)


def braced(term):
    """Writes an element of a list so that it stays one element."""
    return "{" + term + "}" if " " in term else term


def selects_one(term):
    if any(character.isspace() for character in term.strip()):
        return selects(term)
    if "-" in term or "*" in term:
        return fnmatch.fnmatchcase(TARGET, term)
    return effective_target(term)


def guarded(arguments):
    """Whether a trailing `{ target SELECTOR }` (or none) admits this target."""
    for argument in arguments:
        parts = argument.split(None, 1)
        if parts and parts[0] in ("target", "xfail"):
            return parts[0] == "target" and selects(parts[1])
    return True


def flags_match(patterns, flags):
    """Whether any of the option patterns occurs among the flags in use; an empty pattern never does."""
    return any(
        pattern == "*" or any(fnmatch.fnmatchcase(flag, pattern) for flag in flags) for pattern in words(patterns)
    )


def skips(arguments, flags):
    """Evaluates `dg-skip-if COMMENT SELECTOR [INCLUDED-OPTIONS [EXCLUDED-OPTIONS]]`."""
    if not selects(arguments[1]):
        return False
    included = arguments[2] if len(arguments) > 2 else "*"
    excluded = arguments[3] if len(arguments) > 3 else ""
    return flags_match(included, flags) and not flags_match(excluded, flags)


DIRECTIVE = re.compile(r"\{[ \t]+(dg-[-a-z0-9]+)[ \t]+(.*)[ \t]+\}")


def read(source: Path, flags):
    """Reads the directives of a test that is to be compiled with `flags` (a list)."""
    verdict, options, additional = Verdict(), ["-w"], []
    for line in source.read_text(encoding="latin-1").splitlines():
        found = DIRECTIVE.search(line)
        if not found:
            continue
        directive, arguments = found.group(1), words(found.group(2))
        if directive in MESSAGES_ONLY or directive in ALWAYS_MET or directive in EXPECTED_FAILURE:
            continue
        if directive == "dg-options":
            if guarded(arguments[1:]):
                options = words(arguments[0])
        elif directive == "dg-additional-options":
            if guarded(arguments[1:]):
                additional += words(arguments[0])
        elif directive == "dg-do":
            if arguments[0] != "run" or not guarded(arguments[1:]):
                verdict.skipped = f"{directive} {found.group(2)}"
        elif directive == "dg-require-effective-target":
            if guarded(arguments[1:]) and not effective_target(arguments[0]):
                verdict.skipped = f"{directive} {found.group(2)}"
        elif directive == "dg-skip-if":
            if skips(arguments, flags + options + additional):
                verdict.skipped = f"{directive} {found.group(2)}"
        elif directive == "dg-add-options":
            if arguments[0] not in FEATURES_WITHOUT_OPTIONS:
                raise DirectiveError(f"dg-add-options {arguments[0]} is not known")
        else:
            raise DirectiveError(f"directive {directive} is not known")
    verdict.options = options + additional
    return verdict


class Script:
    """Evaluates a test's `.x` file: the small part of Tcl that these files use.

    Known: `if`/`else`, `return`, `lappend additional_flags`, `set` of an expected failure, `global`, comments.
    """

    def __init__(self, path: Path):
        self.path = path
        self.options = []

    def run(self):
        """Answers true when the file says that the test is not to be run."""
        return self.block(self.path.read_text(encoding="latin-1")) == "1"

    def block(self, text):
        for command in self.commands(text):
            parts = words(command)
            if parts[0] == "return":
                return parts[1] if len(parts) > 1 else ""
            if parts[0] == "lappend" and parts[1] == "additional_flags":
                self.options += parts[2:]
            elif parts[0] == "if":
                answer = self.conditional(command)
                if answer is not None:
                    return answer
            elif parts[0] not in ("set", "global"):
                raise DirectiveError(f"{self.path.name}: `{parts[0]}` is not known")
        return None

    @staticmethod
    def commands(text):
        command, depth = "", 0
        for line in text.splitlines():
            if depth == 0 and (not line.strip() or line.strip().startswith("#")):
                continue
            command += line + "\n"
            bare = re.sub(r'\\.|"[^"]*"', "", line)
            depth += bare.count("{") - bare.count("}")
            if depth == 0:
                yield command.strip()
                command = ""
        if command:
            raise DirectiveError(f"unbalanced braces in `{command.strip()}`")

    def conditional(self, command):
        condition, rest = self.condition(command[2:].lstrip())
        parts = words(rest)
        if self.holds(condition):
            return self.block(parts[0])
        if len(parts) > 2 and parts[1] == "else":
            return self.block(parts[2])
        return None

    @staticmethod
    def condition(text):
        """Splits `{CONDITION} {BODY}` or `[COMMAND] {BODY}`."""
        opening, closing = text[0], {"{": "}", "[": "]"}[text[0]]
        depth = 0
        for index, character in enumerate(text):
            depth += {opening: 1, closing: -1}.get(character, 0)
            if depth == 0:
                inner = text[1:index] if opening == "{" else text[:index + 1]
                return inner, text[index + 1:]
        raise DirectiveError(f"unbalanced condition in `{text}`")

    def holds(self, condition):
        """Evaluates `[command]` terms joined by `&&`, `||` and `!`, left to right as Tcl does."""
        calls = []

        def term(found):
            calls.append(words(found.group(1)))
            return f" call({len(calls) - 1}) "

        expression = re.sub(r'\[\s*((?:"(?:\\.|[^"])*"|[^\]"])*)\]', term, condition)
        for sign, word in (("&&", " and "), ("||", " or "), ("!", " not ")):
            expression = expression.replace(sign, word)
        if re.sub(r"call|\d+|and|or|not|[()\s]", "", expression):
            raise DirectiveError(f"{self.path.name}: condition `{condition}` is not known")
        return eval(expression, {"__builtins__": {}}, {"call": lambda index: self.call(calls[index])})

    def call(self, parts):
        if parts[0] == "istarget":
            return fnmatch.fnmatchcase(TARGET, parts[1])
        if parts[0].startswith("check_effective_target_"):
            return effective_target(parts[0].removeprefix("check_effective_target_"))
        raise DirectiveError(f"{self.path.name}: `{parts[0]}` is not known")
