"""Where things lie: what ships with the program, what the user owns, what can be fetched again."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import platformdirs

from orchestrator.contracts.errors import PartFailed

APP_NAME = "mynah"
DATABASE = "mynah.db"
"""File of the conversations in the data folder."""

ECHO_PATHS = "echo-paths.json"
"""File in the data folder of what is learned of loudspeakers and microphones."""

_CHECKOUT = Path(__file__).resolve().parent.parent


def shipped(name: str) -> Path:
    """Return a folder that ships with the program: `flow_config` or `assets`.

    A checkout (also installed as editable) has it beside the packages, a wheel puts it below the
    environment's `share/mynah`. Raises `PartFailed` (`installation_incomplete`) if it is in neither.
    """
    candidates = (_CHECKOUT / name, Path(sys.prefix) / "share" / APP_NAME / name)
    for folder in candidates:
        if folder.is_dir():
            return folder
    raise PartFailed("installation_incomplete", f"The folder {name} of Mynah is missing; install Mynah again.")


def flow_config() -> Path:
    """Return the read-only default flows, rails, policy and persona."""
    return shipped("flow_config")


def assets() -> Path:
    """Return the avatar packs, icons, sounds and translations."""
    return shipped("assets")


def data_dir(override: Path | None = None) -> Path:
    """Return the user's folder (settings, history, own flows) without creating it.

    `override` is the `--data` option; then the environment's MYNAH_DATA counts, then the platform's usual place.
    """
    if override is not None:
        return override.expanduser()
    from_env = os.environ.get("MYNAH_DATA")
    return Path(from_env).expanduser() if from_env else platformdirs.user_data_path(APP_NAME, appauthor=False)


def cache_dir() -> Path:
    """Return the folder of things that can be fetched or made again, without creating it."""
    return platformdirs.user_cache_path(APP_NAME, appauthor=False)


def models_root(override: Path | None = None) -> Path:
    """Return the models folder without creating it: `override`, else MYNAH_MODELS, else `models` in the cache."""
    if override is not None:
        return override.expanduser()
    from_env = os.environ.get("MYNAH_MODELS")
    return Path(from_env).expanduser() if from_env else cache_dir() / "models"


def log_dir(data: Path) -> Path:
    """Return the folder of log files inside the data folder `data`."""
    return data / "logs"
