"""A replica whose model streams: ``streaming_replica.py NAME PORT OUTPUT``.

No switch of the demo turns the model's streaming on; an executor of one's own does.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import django
from google.adk.agents.run_config import RunConfig, StreamingMode


def main(name: str, port: int, output: str) -> None:
    django.setup()
    from billing_agent.executor.config import OutputMode
    from billing_agent.replica import open_replica
    from billing_agent.serving import serve

    opened = []

    async def start():
        opened.append(replica := await open_replica(name))
        executor = replica.executor(output_mode=OutputMode(output))
        streaming = RunConfig(streaming_mode=StreamingMode.SSE, max_llm_calls=20)
        executor._config = replace(executor._config, run_config=streaming)
        replica.serve(executor)

    async def stop():
        await opened[0].close()

    async def application(scope, receive, send):
        await opened[0](scope, receive, send)

    serve(application, port=port, startup=start, shutdown=stop)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
