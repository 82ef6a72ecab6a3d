"""
What ``helm test`` runs: is the gateway ready, does it know us, does one call in each environment with a shell work.
"""

import os
import sys

import httpx

token = os.environ.get("TOKEN", "")
headers = {"Authorization": f"Bearer {token}"} if token else {}
with httpx.Client(base_url=os.environ["GATEWAY"], headers=headers, timeout=120) as gateway:
    ready = gateway.get("/readyz")
    print("gateway:", ready.status_code, ready.text)
    good = ready.status_code == httpx.codes.OK
    if token:
        known = gateway.get("/v1/environments").raise_for_status().json()["environments"]
        for environment in known:
            name = environment["name"]
            if "shell" not in environment["tools"]:
                print(f"{name}: has no shell, so it was not called")
                continue
            # Without a trace id it is a probe: a rollout of its own, finished afterwards.
            body = {"name": "shell", "arguments": {"command": "echo hello"}}
            answer = gateway.post(f"/agent-rft/environments/{name}/tools", json=body)
            print(f"{name}:", answer.status_code, answer.text)
            good = good and answer.status_code == httpx.codes.OK and "hello" in answer.json()["output"]
sys.exit(0 if good else 1)
