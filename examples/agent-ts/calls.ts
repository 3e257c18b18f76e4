import { request, withToken, type ToolResult, type Tools, type ToolUse } from './model.ts';

/**
 * Reaches the branch at a URL over HTTP, in the provider's own form: catalogd takes what the model wrote as
 * it is, and answers what the model wants next.
 */
export function overCalls(branch: string): Tools {
  return {
    async offer() {
      const offer = await request(`${branch}/tools?dialect=anthropic`, withToken());
      return (offer as { tools: object[] }).tools;
    },
    async run(calls: ToolUse[]) {
      return (await request(`${branch}/calls`, withToken(), calls)) as ToolResult[];
    },
    async close() {},
  };
}
