"""Two episodes as GenAI spans, sent by OpenTelemetry's own SDK and exporter; argv: endpoint of traces, API key, "none" or "gzip".

The exporter is the batching one, as in production: a child is sent when it ends, the root with what is left. Prints trace ids and what
the exporter's last answers were.
"""

import json
import sys
import time

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import SpanKind, Status, StatusCode

endpoint, key, compression = sys.argv[1:4]
# Of a model call, a tool and a verifier, seconds: messages are in the order of milliseconds.
TOOK = 0.005
results = []


class Counting(OTLPSpanExporter):
    """Remembers what the exporter made of each answer, and changes nothing."""

    def export(self, spans):
        result = super().export(spans)
        results.append(result is SpanExportResult.SUCCESS)
        return result


provider = TracerProvider(resource=Resource.create({"service.name": "trainer", "palestra.run": f"otel-{compression}"}))
exporter = Counting(endpoint=endpoint, headers={"x-api-key": key}, compression=Compression(compression))
provider.add_span_processor(BatchSpanProcessor(exporter))
tracer = provider.get_tracer("episodes", "1.0")


def text(role, content, **more):
    return {"role": role, "parts": [{"type": "text", "content": content}], **more}


CALL = {"type": "tool_call", "id": "call-1", "name": "add", "arguments": {"a": 2, "b": 3}}
FIRST = [text("system", "Be brief. ü 你"), text("user", "2 + 3?")]
CALLED = {"role": "assistant", "parts": [CALL], "finish_reason": "tool_call"}
RESULT = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call-1", "response": "5"}]}


def chat(given, said, tokens):
    with tracer.start_as_current_span("chat policy-7b", kind=SpanKind.CLIENT) as span:
        time.sleep(TOOK)
        span.set_attributes(
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "vllm",
                "gen_ai.request.model": "policy-7b",
                "gen_ai.usage.input_tokens": tokens[0],
                "gen_ai.usage.output_tokens": tokens[1],
                "gen_ai.input.messages": json.dumps(given),
                "gen_ai.output.messages": json.dumps([said]),
            }
        )


def solved():
    with tracer.start_as_current_span("invoke_agent solver") as root:
        root.set_attributes(
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": "solver",
                "palestra.environment": "acme/adder",
                "palestra.split": "train",
                "palestra.step": 4,
                "palestra.task_index": 7,
            }
        )
        chat(FIRST, CALLED, (20, 9))
        # What ended so far is sent now: the rest of the trace comes in another request.
        provider.force_flush()
        with tracer.start_as_current_span("execute_tool add") as span:
            time.sleep(TOOK)
            span.set_attributes(
                {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": "add",
                    "gen_ai.tool.call.id": "call-1",
                    "gen_ai.tool.call.arguments": json.dumps(CALL["arguments"]),
                    "gen_ai.tool.call.result": "5",
                }
            )
        # Not of the conversation: an exporter sends whatever was traced.
        with tracer.start_as_current_span("GET /weights", kind=SpanKind.CLIENT) as span:
            span.set_attribute("http.request.method", "GET")
        chat([*FIRST, CALLED, RESULT], text("assistant", "It is 5.", finish_reason="stop"), (34, 5))
        time.sleep(TOOK)
        root.set_attribute("palestra.reward", 1.0)
        return trace.format_trace_id(root.get_span_context().trace_id)


def failed():
    with tracer.start_as_current_span("invoke_agent solver") as root:
        root.set_attributes({"gen_ai.operation.name": "invoke_agent", "palestra.environment": "acme/adder", "palestra.step": 4})
        chat(FIRST, text("assistant", "I think"), (20, 2))
        root.set_status(Status(StatusCode.ERROR, "the sandbox died"))
        return trace.format_trace_id(root.get_span_context().trace_id)


traces = {"solved": solved(), "failed": failed()}
provider.shutdown()
print(json.dumps({**traces, "exports": results}))
