#!/usr/bin/env python3
"""A metric plugin in Python: it reads a number from a URL (config.url, loopback or elsewhere) and is
content with it from config.atLeast on. What it judges ends the measurement; it keeps nothing.

Protocol gradus-plugin, version 1: one JSON object a line, requests on standard input, answers on
standard output. Logs go to standard error. See docs/plugins.md."""

import datetime
import json
import sys
import urllib.request

NAME = "example/number"


def config_of(metric):
    return metric["provider"]["plugin"].get(NAME) or {}


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def measure(metric):
    config, began = config_of(metric), now()
    measurement = {"startedAt": began}
    try:
        with urllib.request.urlopen(config["url"], timeout=10) as answer:
            value = float(answer.read(64))
    except Exception as error:  # The controller counts errors, and tries again.
        reason = f"{type(error).__name__}: {error}"
        return measurement | {"phase": "Error", "message": reason, "finishedAt": now()}
    phase = "Successful" if value >= config.get("atLeast", 0) else "Failed"
    return measurement | {"phase": phase, "value": f"{value:g}", "finishedAt": now()}


def answer(method, params):
    if method in ("Run", "Resume"):
        return measure(params["metric"])
    if method == "Terminate":
        return params["measurement"] | {"phase": "Successful", "finishedAt": now()}
    if method == "GetMetadata":
        return {"url": config_of(params["metric"]).get("url", "")}
    if method == "Type":
        return "example-number"
    if method in ("InitPlugin", "Ping", "Quit", "GarbageCollect"):
        return None
    raise ValueError(f"no method {method}")


def main():
    print(json.dumps({"protocol": "gradus-plugin", "version": 1, "kind": "metric"}), flush=True)
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
