"""Native libraries are mapped before they are imported, with the interpreter unlocked."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from audio.native_libraries import HEARING, SPEAKING, map_libraries

_SCRIPT = """
import json, sys
from audio.native_libraries import HEARING, SPEAKING, map_libraries
packages = [name.partition("/")[0] for name in (*HEARING, *SPEAKING)]
files = map_libraries((*HEARING, *SPEAKING))
maps = open("/proc/self/maps").read()
mapped = [str(path) in maps for path in files]
imported = [name for name in packages if name in sys.modules]
import av, ctranslate2, onnxruntime
print(json.dumps({"mapped": mapped, "imported": imported, "again": len(map_libraries((*HEARING, *SPEAKING)))}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_the_libraries_are_there_before_the_import() -> None:
    run = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, timeout=60, check=True)
    found = json.loads(run.stdout)
    assert found == {"mapped": [True] * len((*HEARING, *SPEAKING)), "imported": [], "again": 0}


def test_what_is_not_there_is_left_to_the_import() -> None:
    assert map_libraries(("no_such_package/_ext", "json/no_such_module")) == []
