"""A model hub on loopback (hashes in headers, redirects, ranges, broken connections) and wheels with data files."""

from __future__ import annotations

import hashlib
import re
import threading
import zipfile
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from desktop.model_catalogue import Catalogue, HubSource, Model, ModelFile, PackageMember, PackageSource, Source


class HubRig:
    """The hub. `files` maps `repo/path` to content; those of `large` bytes and more have their SHA-256 published.

    `break_after` closes the next downloads after so many bytes; `corrupt` flips the first byte of what is sent;
    `gate` (an event) holds every download until it is set.
    """

    def __init__(self, files: Mapping[str, bytes], large: int = 1000) -> None:
        self.files = dict(files)
        self.large = large
        self.break_after: int | None = None
        self.corrupt = False
        self.gate: threading.Event | None = None
        self.requests: list[tuple[str, str, str | None]] = []
        self._server = _Server(self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, name="hub-rig", daemon=True
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def downloads(self) -> list[tuple[str, str | None]]:
        """Return (path, Range header) of the content requests so far."""
        return [
            (path, ranged) for method, path, ranged in self.requests if method == "GET" and path.startswith("/cdn/")
        ]

    def __enter__(self) -> HubRig:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.gate is not None:
            self.gate.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=5)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, rig: HubRig) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.rig = rig

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        rig = self.server.rig
        rig.requests.append((self.command, self.path, self.headers.get("Range")))
        found = re.fullmatch(r"/(cdn/)?(.+?)/resolve/main/(.+)", self.path)
        content = rig.files.get(f"{found[2]}/{found[3]}") if found else None
        if found is None or content is None:
            self._head(404, {"Content-Length": "0"})
        elif found[1]:
            self._content(content)
        else:
            self._metadata(content)

    def _metadata(self, content: bytes) -> None:
        """Send to the content server, as the hub does for large files, and publish the hash."""
        headers = {"Location": f"/cdn{self.path}", "Content-Length": "0", "X-Linked-Size": str(len(content))}
        if len(content) >= self.server.rig.large:
            headers["X-Linked-ETag"] = f'"{hashlib.sha256(content).hexdigest()}"'
        else:
            git = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False)
            headers["X-Linked-ETag"] = ""
            headers["ETag"] = f'"{git.hexdigest()}"'
            if self.command == "HEAD":
                self._head(200, {**headers, "Content-Length": str(len(content))})
                return
        self._head(302, headers)

    def _content(self, content: bytes) -> None:
        rig = self.server.rig
        if rig.gate is not None:
            rig.gate.wait(30)
        tag = f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'
        ranged = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        start = int(ranged[1]) if ranged and self.headers.get("If-Range") == tag else 0
        if start >= len(content):
            self._head(416, {"Content-Length": "0"})
            return
        part = content[start:]
        headers = {"Content-Length": str(len(part)), "ETag": tag}
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        self._head(206 if start else 200, headers)
        if rig.corrupt:
            part = bytes([part[0] ^ 1]) + part[1:]
        if self.command == "GET":
            self.wfile.write(part[: rig.break_after])
            self.close_connection = rig.break_after is not None

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


def make_wheel(folder: Path, name: str, members: Mapping[str, bytes], version: str = "1.0") -> Path:
    """Write a pure Python wheel with data files and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{name.replace('-', '_')}-{version}"
    path = folder / f"{stem}-py3-none-any.whl"
    info = f"{stem}.dist-info"
    texts = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{member},,\n" for member in [*members, *texts, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
        for member, text in {**texts, f"{info}/RECORD": record}.items():
            archive.writestr(member, text)
    return path


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def toy_model(
    contents: Mapping[str, bytes],
    *sources: Source,
    name: str = "toy",
    is_pinned: bool = True,
    transform: str | None = None,
) -> Model:
    """Return a catalogue entry whose files have the given contents; sources without files deliver those."""
    files = tuple(
        ModelFile(
            name=file,
            size_bytes=len(content) if is_pinned else None,
            sha256=sha256(content) if is_pinned else None,
        )
        for file, content in contents.items()
    )
    return Model(
        name=name,
        kind="stt",
        title="Toy",
        languages=("en",),
        licence="MIT",
        size_bytes=sum(len(content) for content in contents.values()),
        memory_mb=1,
        default=True,
        transform=transform,
        files=files,
        sources=tuple(with_files(source, files) for source in sources),
    )


def with_files(source: Source, files: tuple[ModelFile, ...]) -> Source:
    match source:
        case HubSource():
            return HubSource(files=files, repo=source.repo, paths=source.paths)
        case PackageSource():
            return PackageSource(files=files, packages=source.packages, members=source.members)
    raise TypeError(type(source).__name__)


def hub_source(repo: str = "maker/toy", **paths: str) -> HubSource:
    return HubSource(files=(), repo=repo, paths=paths)


def package_source(members: Mapping[str, list[tuple[str, str]]], version: str = "1.0") -> PackageSource:
    """Return a source from `{file: [(package, path in it), …]}`."""
    parts = {
        file: tuple(PackageMember(package=package, path=path) for package, path in places)
        for file, places in members.items()
    }
    packages = dict.fromkeys(member.package for places in parts.values() for member in places)
    return PackageSource(files=(), packages=tuple(f"{package}=={version}" for package in packages), members=parts)


def toy_catalogue(*models: Model, hubs: tuple[str, ...] = ()) -> Catalogue:
    return Catalogue(version=1, hubs=hubs, models={model.name: model for model in models})
