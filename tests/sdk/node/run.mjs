// Asks the gateway through the official SDKs. Each line of standard input is a job, each line of standard output what
// its caller was told, in the order in which the jobs end; jobs run side by side. Ends when standard input does.
//
//   {"id": 1, "sdk": "openai", "call": "chat.create", "url": "http://127.0.0.1:8080", "key": "sk-…", "model": "m"}
//   {"id": 1, "text": "…", "events": ["…"], "finish": "stop", "usage": [1, 3], "tools": [], "error": null}
//
// `url` is the gateway's origin. `events` are types, or "chunk" where an API has none. `usage` is tokens of input and
// output. `final` is the status of what the SDK's helper gives as the whole answer. No SDK tries twice.
//
// Called as `node --experimental-import-meta-resolve run.mjs FOLDER`; FOLDER has the packages in its node_modules.

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const packages = pathToFileURL(`${process.argv[2]}/`);
const load = (name) => import(import.meta.resolve(name, packages));

// ---- what the caller is told

class Told {
  text = "";
  events = [];
  finish = null;
  usage = null;
  tools = [];
  final = null;
  error = null;
  #tools = new Map();

  tool(place, name, part) {
    if (!this.#tools.has(place)) this.#tools.set(place, this.tools[this.tools.push({ name, arguments: "" }) - 1]);
    this.#tools.get(place).arguments += part;
  }
}

const describe = (error) => ({
  kind: error.constructor.name,
  message: error.message,
  status: error.status ?? null,
  code: error.code ?? null,
  type: error.type ?? null,
  request_id: error.requestID ?? null,
  cause: error.cause?.code ?? error.cause?.message ?? null,
});

// ---- chat

const MESSAGES = [{ role: "user", content: "hi" }];
const chatUsage = (usage) => [usage.prompt_tokens, usage.completion_tokens];

function chatChunk(told, chunk) {
  told.events.push("chunk");
  if (chunk.usage) told.usage = chatUsage(chunk.usage);
  for (const { delta, finish_reason } of chunk.choices) {
    told.text += delta.content ?? "";
    told.finish = finish_reason ?? told.finish;
    for (const one of delta.tool_calls ?? []) told.tool(one.index, one.function.name, one.function.arguments);
  }
}

const chat = {
  "chat.create": async (sdk, model, told) => {
    const asked = { model, messages: MESSAGES, stream: true, stream_options: { include_usage: true } };
    for await (const chunk of await sdk.chat.completions.create(asked)) chatChunk(told, chunk);
  },
  "chat.stream": async (sdk, model, told) => {
    const stream = sdk.chat.completions.stream({ model, messages: MESSAGES, stream_options: { include_usage: true } });
    for await (const chunk of stream) chatChunk(told, chunk);
    told.final = (await stream.finalChatCompletion()).choices[0].finish_reason;
  },
  "chat.plain": async (sdk, model, told) => {
    const whole = await sdk.chat.completions.create({ model, messages: MESSAGES });
    const [{ message, finish_reason }] = whole.choices;
    [told.text, told.finish, told.usage] = [message.content ?? "", finish_reason, chatUsage(whole.usage)];
    for (const one of message.tool_calls ?? []) told.tool(one.id, one.function.name, one.function.arguments);
  },
};

// ---- responses

function response(told, whole) {
  told.finish = whole.status;
  if (whole.usage) told.usage = [whole.usage.input_tokens, whole.usage.output_tokens];
}

function responseEvent(told, event) {
  told.events.push(event.type);
  if (event.type === "response.output_text.delta") told.text += event.delta;
  if (event.type === "response.output_item.added" && event.item.type === "function_call")
    told.tool(event.output_index, event.item.name, "");
  if (event.type === "response.function_call_arguments.delta") told.tool(event.output_index, "", event.delta);
  if (["response.completed", "response.incomplete", "response.failed"].includes(event.type))
    response(told, event.response);
}

const responses = {
  "responses.create": async (sdk, model, told) => {
    const stream = await sdk.responses.create({ model, input: "hi", stream: true });
    for await (const event of stream) responseEvent(told, event);
  },
  "responses.stream": async (sdk, model, told) => {
    const stream = sdk.responses.stream({ model, input: "hi" });
    for await (const event of stream) responseEvent(told, event);
    told.final = (await stream.finalResponse()).status;
  },
  "responses.plain": async (sdk, model, told) => {
    const whole = await sdk.responses.create({ model, input: "hi" });
    told.text = whole.output_text;
    response(told, whole);
    for (const item of whole.output)
      if (item.type === "function_call") told.tool(item.call_id, item.name, item.arguments);
  },
};

// ---- messages

function messagesEvent(told, event) {
  told.events.push(event.type);
  const usage = event.message?.usage ?? event.usage;
  if (usage) told.usage = [usage.input_tokens ?? told.usage[0], usage.output_tokens ?? told.usage[1]];
  if (event.type === "message_delta") told.finish = event.delta.stop_reason;
  if (event.content_block?.type === "tool_use") told.tool(event.index, event.content_block.name, "");
  if (event.delta?.type === "text_delta") told.text += event.delta.text;
  if (event.delta?.type === "input_json_delta") told.tool(event.index, "", event.delta.partial_json);
}

const messages = {
  "messages.create": async (sdk, model, told) => {
    const stream = await sdk.messages.create({ model, messages: MESSAGES, max_tokens: 100, stream: true });
    for await (const event of stream) messagesEvent(told, event);
  },
  "messages.stream": async (sdk, model, told) => {
    const stream = sdk.messages.stream({ model, messages: MESSAGES, max_tokens: 100 });
    for await (const event of stream) messagesEvent(told, event);
    told.final = (await stream.finalMessage()).stop_reason;
  },
  "messages.plain": async (sdk, model, told) => {
    const whole = await sdk.messages.create({ model, messages: MESSAGES, max_tokens: 100 });
    [told.finish, told.usage] = [whole.stop_reason, [whole.usage.input_tokens, whole.usage.output_tokens]];
    for (const block of whole.content) {
      if (block.type === "text") told.text += block.text;
      if (block.type === "tool_use") told.tool(block.id, block.name, JSON.stringify(block.input));
    }
  },
};

// ---- gemini

function geminiChunk(told, chunk) {
  told.events.push("chunk");
  const usage = chunk.usageMetadata;
  if (usage) told.usage = [usage.promptTokenCount, usage.candidatesTokenCount ?? 0];
  for (const { content, finishReason } of chunk.candidates ?? []) {
    told.finish = finishReason ?? told.finish;
    for (const part of content?.parts ?? []) {
      told.text += part.text ?? "";
      if (part.functionCall) told.tool(told.tools.length, part.functionCall.name, JSON.stringify(part.functionCall.args));
    }
  }
}

const gemini = {
  "gemini.stream": async (sdk, model, told) => {
    for await (const chunk of await sdk.models.generateContentStream({ model, contents: "hi" })) geminiChunk(told, chunk);
  },
  "gemini.plain": async (sdk, model, told) => {
    geminiChunk(told, await sdk.models.generateContent({ model, contents: "hi" }));
  },
};

const legacy = {
  "gemini.stream": async (sdk, model, told) => {
    const { stream, response } = await sdk(model).generateContentStream("hi");
    const whole = response.catch((error) => error);
    for await (const chunk of stream) geminiChunk(told, chunk);
    await whole;
  },
  "gemini.plain": async (sdk, model, told) => geminiChunk(told, (await sdk(model).generateContent("hi")).response),
};

// ---- the SDKs: how a client is made, and what can be asked of it. Loaded when first used.

const openai = (name) => async () => {
  const { default: OpenAI } = await load(name);
  const client = (url, apiKey) => new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
  return { client, calls: { ...chat, ...responses } };
};

const anthropic = async () => {
  const { default: Anthropic } = await load("@anthropic-ai/sdk");
  return { client: (baseURL, apiKey) => new Anthropic({ baseURL, apiKey, maxRetries: 0 }), calls: messages };
};

const genai = (name) => async () => {
  const { GoogleGenAI } = await load(name);
  return { client: (baseUrl, apiKey) => new GoogleGenAI({ apiKey, httpOptions: { baseUrl } }), calls: gemini };
};

const generativeAi = async () => {
  const { GoogleGenerativeAI } = await load("@google/generative-ai");
  const client = (baseUrl, key) => (model) => new GoogleGenerativeAI(key).getGenerativeModel({ model }, { baseUrl });
  return { client, calls: legacy };
};

const SDKS = {
  openai: openai("openai"),
  "openai-6": openai("openai-6"),
  anthropic,
  genai: genai("@google/genai"),
  "genai-2": genai("genai-2"),
  "generative-ai": generativeAi,
};

// ---- jobs

const loaded = {};

async function run({ id, sdk, call, url, key, model }) {
  const told = new Told();
  const { client, calls } = await (loaded[sdk] ??= SDKS[sdk]());
  try {
    await calls[call](client(url, key), model, told);
  } catch (error) {
    told.error = describe(error);
  }
  process.stdout.write(`${JSON.stringify({ id, ...told })}\n`);
}

for await (const line of createInterface({ input: process.stdin })) run(JSON.parse(line));
