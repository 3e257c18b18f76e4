// An agent: a model reasons and asks for tools, catalogd runs them, and the model reads what came of it,
// until it answers or its steps are used up. The model is behind Anthropic's Messages API; without --provider
// a stand-in plays it from script.json. README.md says how to run it.
import { parseArgs } from 'node:util';
import { overCalls } from './calls.ts';
import { overMCP } from './mcp.ts';
import { complete, type Message, type Text, type ToolResult, type ToolUse, type Tools } from './model.ts';
import { standIn } from './standin.ts';

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    server: { type: 'string', default: 'http://127.0.0.1:8420' }, // the address of catalogd serve
    branch: { type: 'string', default: 'default' }, // whose tools the model may use
    tools: { type: 'string', default: 'calls' }, // how to reach them: calls or mcp
    steps: { type: 'string', default: '8' }, // how many messages of the model at most
    provider: { type: 'string' }, // such as https://api.anthropic.com, with ANTHROPIC_API_KEY
    model: { type: 'string', default: 'stand-in' },
  },
});
const question =
  positionals.join(' ') || 'Water boils at 212 degrees Fahrenheit. Make a note of that in Celsius.';

/** Lets the model reason and act until it answers. Each step is one message of the model. */
async function loop(provider: string, tools: Tools, steps: number): Promise<string> {
  const offered = await tools.offer();
  console.log(`question: ${question}`);
  const messages: Message[] = [{ role: 'user', content: question }];
  for (let step = 0; step < steps; step++) {
    const reply = await complete(provider, flags.model, messages, offered);
    messages.push({ role: 'assistant', content: reply.content });
    const said = reply.content.filter(block => block.type === 'text').map(block => (block as Text).text);
    const calls = reply.content.filter(block => block.type === 'tool_use') as ToolUse[];
    if (calls.length === 0) return said.join('\n');
    // That a call fails is a result too: the model reads it, and repairs its call.
    const results = await tools.run(calls);
    show(said, calls, results);
    messages.push({ role: 'user', content: results });
  }
  throw new Error(`stopped: no answer after ${steps} steps; --steps allows more`);
}

/** Prints one step: what the model thinks, what it calls, and what came of it. */
function show(said: string[], calls: ToolUse[], results: ToolResult[]) {
  console.log(`thought: ${said.join('\n')}`);
  calls.forEach((call, i) => {
    const text = results[i].content.map(block => block.text).join('\n');
    console.log(`  call:   ${call.name} ${JSON.stringify(call.input)}`);
    console.log(`  result: ${text.replaceAll('\n', '\n    ')}`);
  });
}

const branch = `${flags.server}/branches/${flags.branch}`;
const ways = { calls: overCalls, mcp: overMCP };
if (!(flags.tools in ways)) throw new Error(`--tools is calls or mcp, not ${flags.tools}`);
const tools = await ways[flags.tools as keyof typeof ways](branch);
const model = flags.provider ? { url: flags.provider, close() {} } : await standIn();
try {
  console.log(`answer: ${await loop(model.url, tools, Number(flags.steps))}`);
} catch (error) {
  console.error(`agent-ts: ${(error as Error).message}`);
  process.exitCode = 1;
} finally {
  model.close();
  await tools.close();
}
