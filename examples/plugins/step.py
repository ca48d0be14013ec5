#!/usr/bin/env python3
"""A step plugin in Python: it works for config.seconds (10 if left out), then succeeds.

Protocol gradus-plugin, version 1: one JSON object a line, requests on standard input, answers on
standard output. Logs go to standard error. See docs/plugins.md."""

import json
import sys
import time


def run(rollout, context):
    status = context.get("status") or {}
    # What was begun is remembered by the Rollout: a controller that died asks again with it.
    began = status.get("began") or time.time()
    seconds = (context.get("config") or {}).get("seconds", 10)
    left = began + seconds - time.time()
    name = rollout["metadata"]["name"]
    print(f"{name}: {max(left, 0):.0f} s left", file=sys.stderr, flush=True)
    if left > 0:
        return {
            "phase": "Running",
            "message": f"{left:.0f} s left",
            "requeueAfterSeconds": max(int(left), 11),
            "status": {"began": began},
        }
    return {"phase": "Successful", "message": "done", "status": {"began": began}}


def answer(method, params):
    if method == "Run":
        return run(params["rollout"], params["context"])
    if method in ("Terminate", "Abort"):
        return {"phase": "Successful", "message": f"{method} heard"}
    if method == "Type":
        return "example-step"
    if method in ("InitPlugin", "Ping", "Quit"):
        return None
    raise ValueError(f"no method {method}")


def main():
    print(json.dumps({"protocol": "gradus-plugin", "version": 1, "kind": "step"}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        reply = {"id": request["id"]}
        try:
            reply["result"] = answer(request["method"], request.get("params"))
        except Exception as error:  # An error of one call must not end the others.
            reply["error"] = str(error)
        print(json.dumps(reply), flush=True)
        if request["method"] == "Quit":
            return


main()
