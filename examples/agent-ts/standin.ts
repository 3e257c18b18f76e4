import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import type { AddressInfo } from 'node:net';
import type { Block, Message, ToolResult, ToolUse } from './model.ts';

/** What the stand-in says after a message that has a text. */
type Line = { after: string; say: string; calls?: { name: string; input: Record<string, unknown> }[] };

/**
 * Serves script.json as a provider does, until close is called. It remembers nothing: it reads the
 * conversation, and says the first line that follows the last message.
 */
export async function standIn() {
  const lines: Line[] = JSON.parse(await readFile(new URL('script.json', import.meta.url), 'utf8'));
  const server = createServer(async (request, response) => {
    const { messages }: { messages: Message[] } = JSON.parse(await text(request));
    const unanswered = firstUnanswered(messages);
    const last = textOf(messages[messages.length - 1]);
    const line = lines.find(({ after }) => last.includes(after));
    let [status, body]: [number, object] = [200, {}];
    if (request.url !== '/v1/messages') [status, body] = [404, refusal(`there is no ${request.url}`)];
    else if (unanswered) [status, body] = [400, refusal(`tool_use ${unanswered} has no tool_result`)];
    else if (!line) [status, body] = [422, refusal(`script.json has no line after ${last}`)];
    else body = message(line, messages.length);
    response.writeHead(status, { 'content-type': 'application/json', connection: 'close' });
    response.end(JSON.stringify(body));
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, close: () => void server.close() };
}

const blocks = (m?: Message): (Block | ToolResult)[] => (m && Array.isArray(m.content) ? m.content : []);

/** Anthropic demands that the message after calls has their results. */
function firstUnanswered(messages: Message[]): string | undefined {
  for (const [i, m] of messages.entries()) {
    const answers = blocks(messages[i + 1]).map(block => (block as ToolResult).tool_use_id);
    const calls = blocks(m).filter(block => block.type === 'tool_use') as ToolUse[];
    const open = calls.find(call => !answers.includes(call.id));
    if (open) return open.id;
  }
}

/** The text of a message: its own, or that of its last result. */
function textOf(m: Message): string {
  if (typeof m.content === 'string') return m.content;
  const results = m.content.filter(block => block.type === 'tool_result') as ToolResult[];
  return results.at(-1)?.content.map(block => block.text).join('\n') ?? '';
}

const refusal = (message: string) => ({ type: 'error', error: { type: 'invalid_request_error', message } });

function message({ say, calls = [] }: Line, n: number) {
  const uses = calls.map((call, i) => ({ type: 'tool_use', id: `toolu_${n}_${i}`, ...call }));
  return {
    type: 'message',
    role: 'assistant',
    model: 'stand-in',
    content: [{ type: 'text', text: say }, ...uses],
    stop_reason: uses.length > 0 ? 'tool_use' : 'end_turn',
  };
}
