"""The package on systems that lack what Linux has."""

from __future__ import annotations

import subprocess
import sys

WITHOUT = """
import errno, importlib, os, pkgutil, signal, sys
import hoodie_ds

def modules():
    found = pkgutil.walk_packages(hoodie_ds.__path__, "hoodie_ds.", onerror=lambda name: None)
    return [one.name for one in found if not one.name.endswith("__main__")]

imported = []
for name in modules():
    try:
        importlib.import_module(name)
        imported.append(name)
    except ImportError:  # of an extra that is not installed
        pass
for name in [name for name in sys.modules if name.partition(".")[0] == "hoodie_ds"]:
    del sys.modules[name]
lacking = {
    errno: "EREMOTEIO ENOTUNIQ ESTRPIPE ENOMEDIUM EBADFD ECOMM EREMCHG ERESTART EUCLEAN",
    os: "register_at_fork fork O_DIRECTORY O_CLOEXEC O_NOFOLLOW O_DIRECT O_PATH O_TMPFILE O_SYNC "
        "O_DSYNC O_NOATIME fdatasync posix_fadvise posix_fallocate sched_getaffinity sendfile "
        "sysconf getuid geteuid getgid getpgid killpg setsid uname statvfs chown mkfifo "
        "copy_file_range pread pwrite preadv pwritev memfd_create getloadavg fchmod openpty waitid",
    signal: "SIGHUP SIGKILL SIGQUIT SIGUSR1 SIGUSR2 SIGALRM SIGPIPE SIGCHLD SIGSTOP "
        "pthread_sigmask setitimer sigwait alarm pause",
}
for module, names in lacking.items():
    for name in names.split():
        vars(module).pop(name, None)
for name in "fcntl resource pwd grp termios tty pty posix _posixsubprocess".split():
    sys.modules[name] = None
for name in imported:
    importlib.import_module(name)
print(len(imported))
"""


def test_nothing_of_the_import_needs_linux() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 300
