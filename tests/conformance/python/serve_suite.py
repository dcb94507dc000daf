"""Serves environment classes of an importable module with the Python server of the interpreter that runs this.

usage: serve_suite.py MODULE Class,Class --port N [--path FOLDER]... [--library openreward|ors] [--drop-route /messages]...
"""

import argparse
import importlib
import sys

import uvicorn


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("module")
    parser.add_argument("classes", type=lambda text: text.split(","))
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--path", action="append", default=[])
    parser.add_argument("--library", default="openreward", choices=["openreward", "ors"])
    parser.add_argument("--drop-route", action="append", default=[])
    arguments = parser.parse_args()

    sys.path[:0] = arguments.path
    module = importlib.import_module(arguments.module)
    library = importlib.import_module("ors" if arguments.library == "ors" else "openreward.environments")
    app = library.Server([getattr(module, name) for name in arguments.classes]).app
    # A server older than the route: what is left then falls through to the 404 of the framework.
    app.router.routes = [
        route
        for route in app.router.routes
        if getattr(route, "path", "") not in {"/{env_name}" + dropped for dropped in arguments.drop_route}
    ]
    uvicorn.run(app, host="127.0.0.1", port=arguments.port, log_level="warning", timeout_keep_alive=75)


if __name__ == "__main__":
    main()
