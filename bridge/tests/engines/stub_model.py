#!/usr/bin/env python3
"""A stand-in for a provider of language models, on loopback, for end-to-end tests of coding-agent CLIs.

It speaks, streamed and whole:

    OpenAI chat completions   POST …/chat/completions
    OpenAI responses          POST …/responses
    Anthropic messages        POST …/messages, …/messages/count_tokens
    Gemini                    POST …/models/NAME:generateContent, :streamGenerateContent, :countTokens
    models                    GET  …/models, …/models/NAME

It follows a plan, set by POST /_plan with {"plan": [[REGEX, ARGUMENTS], …]}: a request that holds N tool results is
answered with a call of the first tool whose name matches the regular expression of step N. When the plan is used up, or
no tool matches, the answer is a text that ends the turn and quotes the last result:

    STUB-FINAL tools=<number of results> result=<its first 300 characters>

With --log FILE it writes one JSON line a request: {"ts", "method", "path", "headers", "api", "body"}, and for a model's
turn also "tools" (the names offered), "results" (the tool results so far) and "reply".

The standard library only.
"""

import argparse
import gzip
import json
import re
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOCK = threading.Lock()
PLAN = []
LOG = None


# ---------------------------------------------------------------- reading requests


def tools_in(tools):
    """The tools of a request, whatever the provider: [{"name", "namespace", "kind"}], groups unfolded."""
    found = []
    for tool in tools or []:
        if not isinstance(tool, dict):
            continue
        if tool.get("type") == "namespace":  # OpenAI responses: a group
            found += [dict(t, namespace=tool.get("name")) for t in tools_in(tool.get("tools"))]
        elif "functionDeclarations" in tool or "function_declarations" in tool:  # Gemini
            for f in tool.get("functionDeclarations") or tool.get("function_declarations"):
                found.append(dict(name=f.get("name"), namespace=None, kind="function"))
        elif isinstance(tool.get("function"), dict):  # chat completions
            found.append(dict(name=tool["function"].get("name"), namespace=None, kind="function"))
        else:  # Anthropic and OpenAI responses, where a built-in tool may have a type and no name
            found.append(dict(name=tool.get("name") or tool.get("type"), namespace=None, kind=tool.get("type")))
    return found


def text_of(x):
    """The text in a tool result, whatever it is wrapped in."""
    if isinstance(x, str):
        return x
    if isinstance(x, list):
        return " ".join(map(text_of, x))
    if isinstance(x, dict):
        for key in ("text", "content", "output", "response"):
            if key in x:
                return text_of(x[key])
    return json.dumps(x)


def list_of(x):
    return x if isinstance(x, list) else []


RESULT_ITEMS = ("function_call_output", "custom_tool_call_output", "tool_search_output", "mcp_tool_call_output")


def results_in(api, body):
    """The texts of the tool results in a request, oldest first."""
    if api == "chat":
        return [text_of(m.get("content")) for m in list_of(body.get("messages")) if m.get("role") == "tool"]
    if api == "responses":
        items = [i for i in list_of(body.get("input")) if i.get("type") in RESULT_ITEMS]
        return [text_of(i if i.get("output") is None else i["output"]) for i in items]
    if api == "anthropic":
        blocks = [b for m in list_of(body.get("messages")) for b in list_of(m.get("content"))]
        return [text_of(b.get("content")) for b in blocks if b.get("type") == "tool_result"]
    parts = [p for c in list_of(body.get("contents")) for p in list_of(c.get("parts"))]
    return [json.dumps(p["functionResponse"].get("response")) for p in parts if "functionResponse" in p]


def decide(api, body):
    """(decision, tools, results). The decision is ("call", tool, arguments) or ("text", text)."""
    results = results_in(api, body)
    tools, revealed = tools_in(body.get("tools")), []
    if api == "responses":
        for item in list_of(body.get("input")):
            if item.get("type") == "additional_tools":  # Codex's code mode carries its tools in the input
                tools += tools_in(item.get("tools"))
            elif item.get("type") in RESULT_ITEMS:  # what a search for tools has found
                revealed += tools_in(item.get("tools"))
    with LOCK:
        plan = list(PLAN)
    step = len(results)
    if step < len(plan) and tools:
        pattern, arguments = plan[step]
        for tool in tools + revealed:
            name = tool["name"] or ""
            if re.search(pattern, name) or re.search(pattern, (tool["namespace"] or "") + name):
                return ("call", tool, arguments), tools, results
    last = results[-1] if results else "<none>"
    return ("text", f"STUB-FINAL tools={step} result={last[:300]}".replace("\n", " ")), tools, results


# ---------------------------------------------------------------- writing replies
# Each gives an object to send as JSON, or a list of (event name or None, data) to send as a stream.


def new_id(prefix):
    return prefix + uuid.uuid4().hex[:24]


def chat_reply(body, decision, stream):
    base = dict(id=new_id("chatcmpl-"), created=int(time.time()), model=body.get("model", "stub"))
    usage = dict(prompt_tokens=10, completion_tokens=5, total_tokens=15)
    if decision[0] == "call":
        function = dict(name=decision[1]["name"], arguments=json.dumps(decision[2]))
        call = dict(index=0, id=new_id("call_"), type="function", function=function)
        message, finish = dict(role="assistant", content=None, tool_calls=[call]), "tool_calls"
    else:
        message, finish = dict(role="assistant", content=decision[1]), "stop"
    if not stream:
        choice = dict(index=0, message=message, finish_reason=finish)
        return dict(base, object="chat.completion", choices=[choice], usage=usage)
    chunk = dict(base, object="chat.completion.chunk")
    return [
        (None, dict(chunk, choices=[dict(index=0, delta=message, finish_reason=None)])),
        (None, dict(chunk, choices=[dict(index=0, delta={}, finish_reason=finish)])),
        (None, dict(chunk, choices=[], usage=usage)),
        (None, "[DONE]"),
    ]


def responses_item(decision):
    """The one output item of a reply, as OpenAI's responses write it."""
    if decision[0] == "text":
        content = [dict(type="output_text", text=decision[1], annotations=[])]
        return dict(type="message", id=new_id("msg_"), role="assistant", status="completed", content=content)
    _, tool, arguments = decision
    base = dict(call_id=new_id("call_"), status="completed")
    if tool["kind"] == "tool_search":
        return dict(base, type="tool_search_call", id=new_id("tsc_"), execution="client", arguments=arguments)
    if tool["kind"] == "custom":
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        item = dict(base, type="custom_tool_call", id=new_id("ctc_"), name=tool["name"], input=text)
    else:
        text = json.dumps(arguments)
        item = dict(base, type="function_call", id=new_id("fc_"), name=tool["name"], arguments=text)
    return dict(item, namespace=tool["namespace"]) if tool["namespace"] else item


def responses_reply(body, decision, stream):
    item = responses_item(decision)
    usage = dict(
        input_tokens=10,
        input_tokens_details=dict(cached_tokens=0),
        output_tokens=5,
        output_tokens_details=dict(reasoning_tokens=0),
        total_tokens=15,
    )
    response = dict(
        id=new_id("resp_"),
        object="response",
        created_at=int(time.time()),
        status="completed",
        model=body.get("model", "stub"),
        output=[item],
        usage=usage,
        error=None,
        incomplete_details=None,
        parallel_tool_calls=False,
        tool_choice="auto",
        tools=[],
        metadata={},
    )
    if not stream:
        return response
    at = dict(item_id=item["id"], output_index=0)
    begun, middle = dict(item, status="in_progress"), []
    if item["type"] == "function_call":
        begun["arguments"] = ""
        middle = [
            ("response.function_call_arguments.delta", dict(at, delta=item["arguments"])),
            ("response.function_call_arguments.done", dict(at, arguments=item["arguments"])),
        ]
    elif item["type"] == "custom_tool_call":
        begun["input"] = ""
        middle = [
            ("response.custom_tool_call_input.delta", dict(at, delta=item["input"])),
            ("response.custom_tool_call_input.done", dict(at, input=item["input"])),
        ]
    elif item["type"] == "message":
        part, at = item["content"][0], dict(at, content_index=0)
        middle = [
            ("response.content_part.added", dict(at, part=dict(part, text=""))),
            ("response.output_text.delta", dict(at, delta=part["text"])),
            ("response.output_text.done", dict(at, text=part["text"])),
            ("response.content_part.done", dict(at, part=part)),
        ]
    events = [
        ("response.created", dict(response=dict(response, status="in_progress", output=[], usage=None))),
        ("response.output_item.added", dict(output_index=0, item=begun)),
        *middle,
        ("response.output_item.done", dict(output_index=0, item=item)),
        ("response.completed", dict(response=response)),
    ]
    return [(name, dict(type=name, sequence_number=i, **data)) for i, (name, data) in enumerate(events)]


def anthropic_reply(body, decision, stream):
    if decision[0] == "call":
        block = dict(type="tool_use", id=new_id("toolu_"), name=decision[1]["name"], input=decision[2])
        begun, stop = dict(block, input={}), "tool_use"
        delta = dict(type="input_json_delta", partial_json=json.dumps(decision[2]))
    else:
        block = dict(type="text", text=decision[1])
        begun, stop = dict(type="text", text=""), "end_turn"
        delta = dict(type="text_delta", text=decision[1])
    message = dict(
        id=new_id("msg_"),
        type="message",
        role="assistant",
        model=body.get("model", "stub"),
        content=[block],
        stop_reason=stop,
        stop_sequence=None,
        usage=dict(input_tokens=10, output_tokens=5, cache_creation_input_tokens=0, cache_read_input_tokens=0),
    )
    if not stream:
        return message
    events = [
        ("message_start", dict(message=dict(message, content=[], stop_reason=None))),
        ("content_block_start", dict(index=0, content_block=begun)),
        ("content_block_delta", dict(index=0, delta=delta)),
        ("content_block_stop", dict(index=0)),
        ("message_delta", dict(delta=dict(stop_reason=stop, stop_sequence=None), usage=dict(output_tokens=5))),
        ("message_stop", {}),
    ]
    return [(name, dict(type=name, **data)) for name, data in events]


def gemini_reply(body, decision, stream):
    config = body.get("generationConfig") or {}
    if decision[0] == "call":
        part = dict(functionCall=dict(name=decision[1]["name"], args=decision[2]))
    elif {"responseJsonSchema", "responseSchema"} & set(config) or config.get("responseMimeType") == "application/json":
        # Gemini CLI asks the model to route a prompt and to say who speaks next.
        answer = dict(reasoning="stub", next_speaker="user", model_choice="flash")
        part = dict(text=json.dumps(dict(answer, complexity_reasoning="stub", complexity_score=1)))
    else:
        part = dict(text=decision[1])
    reply = dict(
        candidates=[dict(content=dict(role="model", parts=[part]), finishReason="STOP", index=0)],
        usageMetadata=dict(promptTokenCount=10, candidatesTokenCount=5, totalTokenCount=15),
        modelVersion="stub",
    )
    return [(None, reply)] if stream else reply


REPLIES = dict(chat=chat_reply, responses=responses_reply, anthropic=anthropic_reply, gemini=gemini_reply)


def api_of(path):
    """Which provider's turn a path asks for; None if it is something else."""
    if path.endswith("/chat/completions"):
        return "chat"
    if path.endswith("/responses"):
        return "responses"
    if path.endswith("/messages"):
        return "anthropic"
    if path.endswith(":generateContent") or path.endswith(":streamGenerateContent"):
        return "gemini"
    return None


# ---------------------------------------------------------------- HTTP


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def record(self, **more):
        if LOG:
            headers = {name.lower(): value for name, value in self.headers.items()}
            row = dict(ts=round(time.time(), 3), method=self.command, path=self.path, headers=headers, **more)
            with LOCK, open(LOG, "a") as f:
                f.write(json.dumps(row) + "\n")

    def send_json(self, value, status=200):
        raw = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def send_events(self, events):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("cache-control", "no-cache")
        self.send_header("connection", "close")
        self.end_headers()
        for name, data in events:
            text = data if isinstance(data, str) else json.dumps(data)
            self.wfile.write((f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode())
            self.wfile.flush()
        self.close_connection = True

    def read_body(self):
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            raw = b""
            while size := int(self.rfile.readline().split(b";")[0] or b"0", 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("content-encoding") == "gzip":
            raw = gzip.decompress(raw)
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            body = None
        return body if isinstance(body, dict) else {}

    def do_GET(self):
        self.record(api="get")
        path = self.path.split("?")[0]
        if path.endswith("/models"):
            model = dict(id="stub-model", object="model", owned_by="stub", created=1)
            self.send_json(dict(object="list", data=[model], models=[]))
        elif m := re.search(r"/models/([^/:]+)$", path):
            self.send_json(dict(id=m[1], object="model", type="model", display_name=m[1], owned_by="stub", created=1))
        else:
            self.send_json({}, 404)

    do_HEAD = do_PUT = do_DELETE = do_GET

    def do_POST(self):
        body = self.read_body()
        path = self.path.split("?")[0]
        if path == "/_plan":
            with LOCK:
                PLAN[:] = body.get("plan", [])
            return self.send_json({"ok": True})
        if path.endswith("/count_tokens") or path.endswith(":countTokens"):
            self.record(api="count")
            return self.send_json(dict(input_tokens=10, totalTokens=10))
        api = api_of(path)
        if not api:
            self.record(api="other", body=body)
            return self.send_json({}, 404)

        decision, tools, results = decide(api, body)
        names = [f"{t['namespace']} :: {t['name']}" if t["namespace"] else str(t["name"]) for t in tools]
        said = decision[1] if decision[0] == "text" else [decision[1]["namespace"], decision[1]["name"], decision[2]]
        self.record(api=api, body=body, tools=names, results=results, reply=[decision[0], said])
        stream = ":stream" in path if api == "gemini" else bool(body.get("stream"))
        reply = REPLIES[api](body, decision, stream)
        try:
            self.send_events(reply) if isinstance(reply, list) else self.send_json(reply)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the engine gave up on this turn
        return None


def main():
    global LOG
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--port", type=int, required=True)
    ap.add_argument("--log", metavar="FILE")
    a = ap.parse_args()
    LOG = a.log
    server = ThreadingHTTPServer(("127.0.0.1", a.port), Handler)
    server.daemon_threads = True
    server.serve_forever()


if __name__ == "__main__":
    main()
