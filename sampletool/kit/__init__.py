"""The kit: what all tools that are built on it share. Do not edit it: a newer one replaces it.

The kit can be a folder in the package of a program, or a package that the program depends on. So no
module of the kit may assume that it is inside the package of the program: program.py knows it.
"""

package_of_program = ""
"""The package of the program, if its entry point has named it. Only program.py reads this."""


def name_package(package: str) -> None:
    """Say which package is the program, such as `ledger`.

    The entry point calls this before it imports anything else of the kit. Raise RuntimeError if the
    kit has already taken its names from another package.
    """
    # Importing it at the top would make the names before anybody could set them.
    import sys

    global package_of_program
    program = sys.modules.get(__name__ + ".program")
    if program is not None and package != program.PACKAGE:
        message = "The program is {}. It cannot become {} now: name it before you import the kit."
        raise RuntimeError(message.format(program.PACKAGE, package))
    package_of_program = package
