# Build the environment of a project: this is what make runs if pyproject.toml or constraints.txt
# has changed. The arguments are those of the installer, such as: -e '.[redis]' --group dev
#
# The environment is built in a folder of its own, such as .venv-built-1789000000-4711. `.venv` is a
# link to such a folder, and it is replaced in one step at the end. So if a package cannot be
# installed, for example without a network, the old environment is still there and works. (An
# environment cannot be built under another name and renamed: its scripts contain its path.)
#
# Variables: PYTHON is the interpreter. UV is the path of uv, or empty if there is none. PACKAGE is
# the package of the project.
set -eu

if ! command -v "$PYTHON" > /dev/null; then
  echo "Python 3.11 or newer is needed: $PYTHON is not on the PATH." >&2
  exit 1
fi
if ! "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  echo "Python 3.11 or newer is needed: $PYTHON is $("$PYTHON" --version)." >&2
  echo "Name another one: make PYTHON=python3.12" >&2
  exit 1
fi
if [ -z "$UV" ] && ! "$PYTHON" -c 'import venv, ensurepip' 2> /dev/null; then
  echo "The module venv of Python is missing, and there is no uv." >&2
  echo "On Debian: apt install python3-venv" >&2
  exit 1
fi

# Not only the process id: in containers, two builds often have the same one. Then the folder of this
# build would be the one that .venv leads to.
new=".venv-built-$(date +%s)-$$"
moved=".venv-old-$$"

clean_up() {
  if [ "$(readlink .venv)" != "$new" ]; then
    rm -rf "$new" "$new.link"
    if [ -d "$moved" ] && [ ! -e .venv ]; then
      mv "$moved" .venv
    fi
    if [ -e .venv ]; then
      echo "The new environment could not be built: see above. The old one in .venv is unchanged" >&2
      echo "and works, but pyproject.toml or constraints.txt has changed since it was built." >&2
      echo "Run make again when the packages can be downloaded. Until then, use the old one" >&2
      echo "directly, for example .venv/bin/python -m pytest." >&2
    fi
  fi
}
trap clean_up EXIT
# Without these, the shell would exit on a signal without cleaning up.
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

echo "Setting up .venv, once." >&2
if [ -n "$UV" ]; then
  "$UV" venv --quiet --python "$PYTHON" "$new"
  "$UV" pip install --quiet --python "$new/bin/python" --compile-bytecode -c constraints.txt "$@"
else
  "$PYTHON" -m venv "$new"
  # Older versions of pip do not know --group.
  "$new/bin/python" -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
  "$new/bin/python" -m pip install --quiet --disable-pip-version-check -c constraints.txt "$@"
fi
# Without bytecode, each command would compile the package again if it cannot write it.
"$new/bin/python" -m compileall -q "$PACKAGE"
touch "$new/.ready"

# If .venv is a folder, as older versions of this script have built it, it cannot be replaced in one
# step.
old=""
if [ -L .venv ]; then
  old=$(readlink .venv)
elif [ -e .venv ]; then
  mv .venv "$moved"
  old=$moved
fi
ln -s "$new" "$new.link"
"$new/bin/python" -c "import os; os.replace('$new.link', '.venv')"
if [ -n "$old" ]; then
  rm -rf "$old"
fi
# Builds that were killed have left their folders. A build takes less than an hour.
# Other folders that begin with .venv belong to the developer.
find . -maxdepth 1 \( -name '.venv-built-*' -o -name '.venv-old-*' \) ! -name "$new" -mmin +60 \
  -exec rm -rf {} +
