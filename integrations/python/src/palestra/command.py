"""`palestra-upload`: uploads what ended processes left in a spool."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from palestra.settings import settings
from palestra.upload import Uploader, default_directory


def main(arguments: list[str] | None = None) -> int:
    """`palestra-upload [DIRECTORY]`: uploads the events that ended processes left, with any key. Exit status 1 if some remain, 2 without a spool."""
    parser = argparse.ArgumentParser(prog="palestra-upload", description="Upload the rollout events that ended processes left on disk.")
    parser.add_argument("directory", nargs="?", help="the spool; by default that of the service in the user's state directory")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds (default: 600)")
    parser.add_argument("--url", help="address of the service; by default PALESTRA_URL or OPENREWARD_URL")
    options = parser.parse_args(arguments)
    target = settings(options.url)
    directory = Path(options.directory) if options.directory else default_directory(target)
    if not directory.is_dir():
        print(f"palestra-upload: There is no spool at {directory}. Pass the directory of the recorder, its `spool_dir`.", file=sys.stderr)
        return 2
    report = Uploader(target, directory, any_owner=True).close(options.timeout)
    print(report)
    return 0 if report.complete else 1


if __name__ == "__main__":
    sys.exit(main())
