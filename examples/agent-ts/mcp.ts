import { Client, ProtocolError, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { withToken, type Text, type ToolResult, type Tools, type ToolUse } from './model.ts';

/**
 * Reaches the branch as any MCP client does. What the model says is translated here: its calls into requests,
 * and each answer into a result.
 */
export async function overMCP(branch: string): Promise<Tools> {
  const client = new Client({ name: 'agent-ts', version: '1' }, { versionNegotiation: { mode: 'auto' } });
  const options = { requestInit: { headers: withToken() } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${branch}/mcp`), options));

  async function call({ id, name, input }: ToolUse): Promise<ToolResult> {
    try {
      const answer = await client.callTool({ name, arguments: input });
      const content = answer.content.filter(block => block.type === 'text') as Text[];
      return { type: 'tool_result', tool_use_id: id, content, is_error: answer.isError };
    } catch (error) {
      // An unknown tool is an error of the protocol; the model can repair it too.
      if (!(error instanceof ProtocolError)) throw error;
      const content: Text[] = [{ type: 'text', text: error.message }];
      return { type: 'tool_result', tool_use_id: id, content, is_error: true };
    }
  }

  return {
    async offer() {
      const { tools } = await client.listTools();
      return tools.map(({ name, description, inputSchema }) => {
        return { name, description, input_schema: inputSchema };
      });
    },
    run: calls => Promise.all(calls.map(call)),
    close: () => client.close(),
  };
}
