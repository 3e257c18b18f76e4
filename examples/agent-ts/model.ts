// A model behind Anthropic's Messages API, as far as a loop reads it.

export type Text = { type: 'text'; text: string };
export type ToolUse = { type: 'tool_use'; id: string; name: string; input: Record<string, unknown> };
export type ToolResult = { type: 'tool_result'; tool_use_id: string; content: Text[]; is_error?: boolean };
/** A block may be of another type, such as thinking: the conversation goes on with it as it is. */
export type Block = Text | ToolUse | { type: string };
export type Message = { role: 'user' | 'assistant'; content: string | (Block | ToolResult)[] };

/** The tools of a branch: what the model is offered, and how its calls are run. */
export interface Tools {
  /** The tools as the Messages API takes them. */
  offer(): Promise<object[]>;
  /** Runs the calls, and returns a result for each. */
  run(calls: ToolUse[]): Promise<ToolResult[]>;
  close(): Promise<void>;
}

/** Asks the model for its next message. */
export async function complete(provider: string, model: string, messages: Message[], tools: object[]) {
  const headers = { 'x-api-key': process.env.ANTHROPIC_API_KEY ?? '', 'anthropic-version': '2023-06-01' };
  const body = { model, max_tokens: 4096, messages, tools };
  return (await request(`${provider}/v1/messages`, headers, body)) as { content: Block[] };
}

/** Sends a request, with a JSON body where there is one, and returns the JSON of the response. */
export async function request(url: string, headers: Record<string, string>, body?: object): Promise<unknown> {
  const response = await fetch(url, {
    method: body ? 'POST' : 'GET',
    headers: { 'content-type': 'application/json', ...headers },
    body: body && JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${url}: status ${response.status}: ${(await response.text()).trim()}`);
  return response.json();
}

/** The headers with catalogd's token, where there is one. */
export function withToken(): Record<string, string> {
  const token = process.env.CATALOGD_TOKEN;
  return token ? { authorization: `Bearer ${token}` } : {};
}
