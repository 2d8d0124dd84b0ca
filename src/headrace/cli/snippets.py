"""What each client needs to speak to a gateway: settings of coding agents, and small programs that stream one answer.

The programs run as they are printed. No text holds a key: each tells where it is.

Sources: Codex, codex-rs/model-provider-info (`env_key`, `wire_api = "responses"` is the only one left); Claude Code,
its pages on gateways (base URL without /v1; ANTHROPIC_AUTH_TOKEN is sent as a bearer key, ANTHROPIC_API_KEY beside it
as x-api-key); Gemini CLI, packages/core/src/core/contentGenerator.ts (a base URL alone selects the sign-in type
`gateway`, which its own check refuses in some versions, so the type is set).
"""

import json
import shlex
from dataclasses import dataclass

from headrace.cli.gateway_file import KeyPlace
from headrace.http.model_path import encoded
from headrace.model.wire import WireProtocol

OWN_VARIABLE = "HEADRACE_KEY"
"""Where clients look for a key that nothing else names."""
PROMPT = "Say hello."
MOST_TOKENS = 1024


@dataclass(frozen=True, slots=True)
class Client:
    """All that a text needs. `root` is the gateway's URL without a version; `other_models` says that a coding agent may
    ask for its own choice of models too."""

    root: str
    key: KeyPlace
    model: str
    protocol: WireProtocol
    other_models: bool = True

    @property
    def variable(self) -> str:
        """The environment variable for programs that take their key from one."""
        return self.key.variable or OWN_VARIABLE

    @property
    def in_shell(self) -> str:
        """The key as it stands between double quotes in a shell."""
        return f"$(cat {shlex.quote(self.key.file)})" if self.key.file else f"${self.variable}"


# ------------------------------------------------------------------------------------------------------------ agents


def codex(client: Client) -> str:
    """Codex: a provider of its own."""
    export = "" if client.key.variable else f'export {client.variable}="{client.in_shell}"\n'
    return f"""\
# ~/.codex/config.toml: these two lines before the first table
model = {json.dumps(client.model)}
model_provider = "headrace"

[model_providers.headrace]
name = "Headrace"
base_url = {json.dumps(client.root + "/v1")}
env_key = "{client.variable}"
wire_api = "responses"

# then, in a shell
{export}codex
"""


def claude(client: Client) -> str:
    """Claude Code: variables of its environment."""
    lines = [
        "# in the shell that starts Claude Code; to keep them, under env in ~/.claude/settings.json",
        f"export ANTHROPIC_BASE_URL={shlex.quote(client.root)}",
        f'export ANTHROPIC_AUTH_TOKEN="{client.in_shell}"',
        "unset ANTHROPIC_API_KEY  # it would be sent beside the token, and two keys that differ are refused",
        f"export ANTHROPIC_MODEL={shlex.quote(client.model)}",
    ]
    if not client.other_models:
        tiers = ("OPUS", "SONNET", "HAIKU")
        lines += [f"export ANTHROPIC_DEFAULT_{tier}_MODEL={shlex.quote(client.model)}" for tier in tiers]
    return "\n".join([*lines, "claude", ""])


def gemini(client: Client) -> str:
    """Gemini CLI: variables of its environment, and its way to sign in."""
    return f"""\
# ~/.gemini/settings.json: sign in with a key; without it a base URL, or a login with Google, decides otherwise
{{"security": {{"auth": {{"selectedType": "gemini-api-key"}}}}}}

# then, in a shell
export GOOGLE_GEMINI_BASE_URL={shlex.quote(client.root)}
export GEMINI_API_KEY="{client.in_shell}"
export GEMINI_MODEL={shlex.quote(client.model)}
unset GOOGLE_GENAI_USE_VERTEXAI GOOGLE_GENAI_USE_GCA
gemini
"""


# ------------------------------------------------------------------------------------------------------------ Python

_PYTHON = {
    WireProtocol.RESPONSES: """\
# pip install openai
{imports}
from openai import OpenAI

client = OpenAI(base_url={v1}, api_key={key})
for event in client.responses.create(model={model}, input={prompt}, stream=True):
    if event.type == "response.output_text.delta":
        print(event.delta, end="", flush=True)
    elif event.type == "response.failed":
        raise SystemExit(f"\\n{{event.response.error}}")
print()
""",
    WireProtocol.CHAT: """\
# pip install openai
{imports}
from openai import OpenAI

client = OpenAI(base_url={v1}, api_key={key})
messages = [{{"role": "user", "content": {prompt}}}]
for chunk in client.chat.completions.create(model={model}, messages=messages, stream=True):
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
print()
""",
    WireProtocol.MESSAGES: """\
# pip install anthropic
{imports}
from anthropic import Anthropic

client = Anthropic(base_url={root}, api_key={key})
messages = [{{"role": "user", "content": {prompt}}}]
with client.messages.stream(model={model}, max_tokens={most}, messages=messages) as stream:
    for text in stream.text_stream:
        print(text, end="", flush=True)
print()
""",
    WireProtocol.GEMINI: """\
# pip install google-genai
{imports}
from google import genai
from google.genai import types

client = genai.Client(api_key={key}, http_options=types.HttpOptions(base_url={root}))
for chunk in client.models.generate_content_stream(model={model}, contents={prompt}):
    print(chunk.text or "", end="", flush=True)
print()
""",
}


def python(client: Client) -> str:
    """A program for Python with the official SDK of the protocol."""
    if client.key.file:
        imports, key = "from pathlib import Path\n", f"Path({json.dumps(client.key.file)}).read_text().strip()"
    else:
        imports, key = "import os\n", f'os.environ["{client.variable}"]'
    return _filled(_PYTHON, client, imports, key)


# -------------------------------------------------------------------------------------------------------------- Node

_NODE = {
    WireProtocol.RESPONSES: """\
// npm install openai; a file that ends in .mjs
{imports}import OpenAI from "openai";

const client = new OpenAI({{ baseURL: {v1}, apiKey: {key} }});
const stream = await client.responses.create({{ model: {model}, input: {prompt}, stream: true }});
for await (const event of stream) {{
  if (event.type === "response.output_text.delta") process.stdout.write(event.delta);
  if (event.type === "response.failed") throw new Error(event.response.error?.message);
}}
console.log();
""",
    WireProtocol.CHAT: """\
// npm install openai; a file that ends in .mjs
{imports}import OpenAI from "openai";

const client = new OpenAI({{ baseURL: {v1}, apiKey: {key} }});
const messages = [{{ role: "user", content: {prompt} }}];
const stream = await client.chat.completions.create({{ model: {model}, messages, stream: true }});
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta?.content ?? "");
console.log();
""",
    WireProtocol.MESSAGES: """\
// npm install @anthropic-ai/sdk; a file that ends in .mjs
{imports}import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({{ baseURL: {root}, apiKey: {key} }});
const messages = [{{ role: "user", content: {prompt} }}];
const stream = client.messages.stream({{ model: {model}, max_tokens: {most}, messages }});
stream.on("text", (text) => process.stdout.write(text));
await stream.finalMessage();
console.log();
""",
    WireProtocol.GEMINI: """\
// npm install @google/genai; a file that ends in .mjs
{imports}import {{ GoogleGenAI }} from "@google/genai";

const client = new GoogleGenAI({{ apiKey: {key}, httpOptions: {{ baseUrl: {root} }} }});
const stream = await client.models.generateContentStream({{ model: {model}, contents: {prompt} }});
for await (const chunk of stream) process.stdout.write(chunk.text ?? "");
console.log();
""",
}


def node(client: Client) -> str:
    """A program for Node with the official SDK of the protocol."""
    if client.key.file:
        imports = 'import { readFileSync } from "node:fs";\n'
        key = f'readFileSync({json.dumps(client.key.file)}, "utf8").trim()'
    else:
        imports, key = "", f"process.env.{client.variable}"
    return _filled(_NODE, client, imports, key)


# -------------------------------------------------------------------------------------------------------------- curl


def curl(client: Client) -> str:
    """A command for a shell; it prints the events as they come."""
    say = [{"role": "user", "content": PROMPT}]
    header, path, body = {
        WireProtocol.RESPONSES: (
            "Authorization: Bearer ", "/v1/responses", {"model": client.model, "input": PROMPT, "stream": True}
        ),
        WireProtocol.CHAT: (
            "Authorization: Bearer ",
            "/v1/chat/completions",
            {"model": client.model, "messages": say, "stream": True},
        ),
        WireProtocol.MESSAGES: (
            "x-api-key: ",
            "/v1/messages",
            {"model": client.model, "max_tokens": MOST_TOKENS, "messages": say, "stream": True},
        ),
        WireProtocol.GEMINI: (
            "x-goog-api-key: ",
            f"/v1beta/models/{encoded(client.model)}:streamGenerateContent?alt=sse",
            {"contents": [{"role": "user", "parts": [{"text": PROMPT}]}]},
        ),
    }[client.protocol]  # fmt: skip
    version = " \\\n  -H 'anthropic-version: 2023-06-01'" if client.protocol is WireProtocol.MESSAGES else ""
    return f"""\
curl -sSN --fail-with-body {shlex.quote(client.root + path)} \\
  -H "{header}{client.in_shell}" -H 'Content-Type: application/json'{version} \\
  -d {shlex.quote(json.dumps(body, ensure_ascii=False))}
"""


def _filled(texts: dict[WireProtocol, str], client: Client, imports: str, key: str) -> str:
    return texts[client.protocol].format(
        imports=imports,
        key=key,
        root=json.dumps(client.root),
        v1=json.dumps(client.root + "/v1"),
        model=json.dumps(client.model),
        prompt=json.dumps(PROMPT),
        most=MOST_TOKENS,
    )
