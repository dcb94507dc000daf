"""A tour of sandboxes with the unmodified client; prints what it saw as JSON. Arguments: deployment, image, base URL of a plain HTTP server."""

import asyncio
import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path

from openreward import AsyncOpenReward, SandboxSettings
from openreward.api.sandboxes.types import (SandboxBucketConfig, SandboxEgressRule, SandboxHostAlias, SandboxNetworkPolicy,
                                            SandboxSidecarContainer)

deployment, image, server = sys.argv[1:4]
host = server.split("//")[1].split(":")[0]
seen = {}


def settings(**given):
    return SandboxSettings(**{"environment": deployment, "image": image, "machine_size": "0.5:1", **given})


async def failure(work):
    try:
        await work
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"
    return None


async def start(client, given):
    async with client.sandbox(given):
        pass


def rule(action, path=None, methods=None):
    return SandboxEgressRule(action=action, host=host, path=path, methods=methods)


GET = ("node -e 'const p = new URL(process.env.HTTP_PROXY); require(\"http\").get({ host: p.hostname, port: p.port, path: \"%s\" }, "
       "(a) => { let t = \"\"; a.on(\"data\", (d) => t += d).on(\"end\", () => console.log(a.statusCode, t)) })'")


async def tour(client):
    given = settings(
        env={"GREETING": "hello there", "OPENAI_API_KEY": "sk-of-the-author"},
        network=SandboxNetworkPolicy(rules=[rule("deny", "/simple/requests/*"), rule("allow", "/simple/*", ["GET"])]),
        sidecars=[SandboxSidecarContainer(name="db", image=image, command=["/usr/bin/node"],
                                          args=["-e", "require('http').createServer((q, a) => a.end('db')).listen(8000)"])],
        host_aliases=[SandboxHostAlias(ip="127.0.0.1", hostnames=["db"])],
        bucket_config=SandboxBucketConfig(mount_path="/data", only_dir="public"),
    )
    async with client.sandbox(given) as one, client.sandbox(settings(block_network=True)) as two:
        seen["run"] = list(await one.run("echo $GREETING $openai_api_key; exit 3"))
        ended = await one.run("sleep 20", timeout=1)
        seen["timeout"] = [ended.return_code, ended.timed_out]
        own = await one.run("exit 124")
        seen["own_124"] = [own.return_code, own.timed_out]
        cut = await one.run("printf abcdef", max_bytes=4)
        seen["cut"] = [cut.output, cut.truncated]
        seen["files"] = await files(one, two)
        seen["bucket"] = await one.check_run("cat /data/task.txt; ls /data")
        seen["sidecar"] = await one.check_run(
            "for i in 1 2 3 4 5 6 7 8 9 10; do node -e 'require(\"http\").get(\"http://db:8000\", (a) => a.pipe(process.stdout))'"
            " 2>/dev/null && break; sleep 0.5; done")
        seen["network"] = [
            (await one.run(GET % f"{server}{path}")).output for path in ("/simple/numpy/", "/simple/Requests/", "/other")]
        await one.set_network(SandboxNetworkPolicy(rules=[rule("allow")]))
        seen["replaced"] = (await one.run(GET % f"{server}/other")).output
        seen["no_policy"] = await failure(two.set_network(SandboxNetworkPolicy()))
        seen["blocked"] = (await two.run("echo -$HTTP_PROXY-")).output
        https = SandboxNetworkPolicy(rules=[SandboxEgressRule(action="allow", host="pypi.org", path="/simple/*")])
        seen["unenforceable"] = await failure(one.set_network(https))


async def files(one, two):
    with tempfile.TemporaryDirectory() as folder:
        local = Path(folder, "up one.txt")
        local.write_bytes(os.urandom(200_000))
        await one.upload(local, "/tmp/up one.txt")
        await one.run("ln -s 'up one.txt' /tmp/link; : > /tmp/empty; mkdir /tmp/dir")
        downloads = [await one.download(path) for path in ("/tmp/up one.txt", "tmp/up one.txt", "/tmp/link", "/tmp/empty")]
        Path(folder, "large").write_bytes(os.urandom(9_000_000))
        sent = await one.upload_from(Path(folder, "large"), "/tmp/sub/large")
        copied = await one.copy_to(two, "/tmp/sub/large", "/tmp/copy")
        got = await two.download_to("/tmp/copy", Path(folder, "back"))
        digest = hashlib.sha256(Path(folder, "large").read_bytes()).hexdigest()
        return {
            "downloads": [data == local.read_bytes() for data in downloads[:3]] + [downloads[3] == b""],
            "digests": [sent.sha256 == digest, copied.sha256 == digest, got.sha256 == digest, got.size],
            "stat": await one.stat_file("/tmp/up one.txt", sha256=True) == {
                "size": 200_000, "sha256": hashlib.sha256(local.read_bytes()).hexdigest()},
            "refusals": [await failure(one.download(path)) for path in ("/tmp/dir", "/tmp/none")]
            + [await failure(one.stat_file("/tmp/link"))],
        }


async def main():
    client = AsyncOpenReward()
    await tour(client)
    seen["missing_image"] = await failure(start(client, settings(image="localhost/palestra-test/none:1")))
    seen["unknown"] = await failure(start(client, settings(environment="GeneralReasoning/idontexist")))
    seen["gpu"] = await failure(start(client, settings(machine_size="nvidia-l4")))


asyncio.run(main())
print(json.dumps(seen))
