"""Checks that nobody but their user can have written files and folders, as sshd does for its own (StrictModes).

A folder must belong to the user or to root and be writable for neither group nor others, and so must each folder
above it: who may rename an upper one can put another in its place. Two things are accepted that sshd refuses: a folder
above with the sticky bit (/tmp), in which nobody can rename another user's files, and one that is writable for the
user's private group, which has no other member (umask 002 of some distributions).
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from pathlib import Path

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class Unsafe(Exception):
    """Somebody else can have written it; the message says who and what helps."""


def check_folder(path: Path) -> None:
    """Raises Unsafe unless the folder is this user's, and nobody else could have put another in its place."""
    real = path.resolve()
    found = real.stat()
    if not stat.S_ISDIR(found.st_mode):
        raise Unsafe(f"{path} is not a folder")
    if found.st_uid != os.geteuid():
        raise Unsafe(f"{path} belongs to {_user(found.st_uid)}, not to {_user(os.geteuid())}: chown it")
    if _open_to_others(found):
        raise Unsafe(f"{path} is writable for others ({stat.filemode(found.st_mode)}): chmod go-w {path}")
    for folder in real.parents:
        above = folder.stat()
        if above.st_uid not in (0, os.geteuid()):
            raise Unsafe(f"{folder}, above {path}, belongs to {_user(above.st_uid)}, who could replace what is in it")
        if _open_to_others(above) and not above.st_mode & stat.S_ISVTX:
            mode = stat.filemode(above.st_mode)
            raise Unsafe(f"{folder}, above {path}, is writable for others ({mode}): chmod go-w {folder}")


def check_file(path: Path, *, secret: bool = False) -> None:
    """Raises Unsafe unless this user alone owns and writes the file or folder, and alone reads it if it is `secret`."""
    link, found = path.lstat(), path.stat()
    for each in (link, found):
        if each.st_uid != os.geteuid():
            raise Unsafe(f"{path} belongs to {_user(each.st_uid)}, not to {_user(os.geteuid())}: remove or chown it")
    if not any(kind(found.st_mode) for kind in (stat.S_ISREG, stat.S_ISDIR, stat.S_ISSOCK)):
        raise Unsafe(f"{path} is neither a file nor a folder")
    if _open_to_others(found):
        raise Unsafe(f"{path} is writable for others ({stat.filemode(found.st_mode)}): chmod go-w {path}")
    if secret and found.st_mode & _OTHERS:
        raise Unsafe(f"{path} is open to others ({stat.filemode(found.st_mode)}): chmod go= {path}")


def _open_to_others(found: os.stat_result) -> bool:
    writable = found.st_mode & _OTHERS_WRITE
    return bool(writable) and not (writable == stat.S_IWGRP and _is_private_group(found.st_gid))


def _is_private_group(gid: int) -> bool:
    """True when nobody but this user is in the group."""
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    alone = all(each.pw_name == user.pw_name for each in pwd.getpwall() if each.pw_gid == gid)
    return alone and set(group.gr_mem) <= {user.pw_name}


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
