// The conformance suite's test server on the TypeScript SDK 1.x with zod schemas. It listens on 127.0.0.1, on
// the port of its one argument, and keeps a session for each client, as the SDK's documentation shows.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { completable } from '@modelcontextprotocol/sdk/server/completable.js';
import { createMcpExpressApp } from '@modelcontextprotocol/sdk/server/express.js';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
  CreateMessageResultSchema,
  ElicitResultSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { addContentTools, addPrompts, addResources, forms, text } from './typescript.mjs';

function newServer() {
  const server = new McpServer(
    { name: 'conformance-ts', version: '1.0.0' },
    {
      capabilities: { logging: {}, resources: { subscribe: true } },
    },
  );
  addContentTools(server);
  addSpeakingTools(server);
  addAskingTools(server);
  addSchemaTools(server);
  addResources(server, ResourceTemplate);
  addPrompts(server, completable);
  server.server.setRequestHandler(SubscribeRequestSchema, () => ({}));
  server.server.setRequestHandler(UnsubscribeRequestSchema, () => ({}));
  return server;
}

function addSpeakingTools(server) {
  server.registerTool(
    'test_tool_with_logging',
    { description: 'Logs while it runs.' },
    async ({ sendNotification }) => {
      for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
        await sendNotification({ method: 'notifications/message', params: { level: 'info', data } });
        await sleep(50);
      }
      return { content: [text('done')] };
    },
  );
  const reports = { description: 'Reports progress while it runs.' };
  server.registerTool('test_tool_with_progress', reports, async ({ _meta, sendNotification }) => {
    const progressToken = _meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined) {
        await sendNotification({
          method: 'notifications/progress',
          params: { progressToken, progress, total: 100 },
        });
      }
      await sleep(50);
    }
    return { content: [text(String(progressToken))] };
  });
  const closes = { description: 'Closes its stream while it runs.' };
  server.registerTool('test_reconnection', closes, async ({ closeSSEStream }) => {
    closeSSEStream?.();
    await sleep(100);
    return { content: [text('Reconnection test completed')] };
  });
}

function addAskingTools(server) {
  const samples = { description: 'Asks the model of the client.', inputSchema: { prompt: z.string() } };
  server.registerTool('test_sampling', samples, async ({ prompt }, { sendRequest }) => {
    const params = { messages: [{ role: 'user', content: text(prompt) }], maxTokens: 100 };
    const { content } = await sendRequest(
      { method: 'sampling/createMessage', params },
      CreateMessageResultSchema,
    );
    return { content: [text(`LLM response: ${content.text}`)] };
  });
  for (const [name, { message, properties, inputSchema }] of Object.entries(forms)) {
    server.registerTool(
      name,
      { description: 'Asks the user.', inputSchema },
      async (args, { sendRequest }) => {
        const params = { message: args.message ?? message, requestedSchema: { type: 'object', properties } };
        const { action, content } = await sendRequest(
          { method: 'elicitation/create', params },
          ElicitResultSchema,
        );
        return {
          content: [
            text(`Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`),
          ],
        };
      },
    );
  }
}

// addSchemaTools adds what zod makes of schemas that servers have: SDK 1.x lists no schema but zod's.
function addSchemaTools(server) {
  server.registerTool(
    'zod_shapes',
    {
      description: 'Has arguments of many kinds.',
      inputSchema: {
        mail: z.email().optional(),
        when: z.iso.datetime().optional(),
        link: z.url().optional(),
        pair: z.tuple([z.string(), z.number()]).optional(),
        level: z.enum(['low', 'high']).default('low'),
        labels: z.record(z.string(), z.string()).optional(),
        shape: z
          .discriminatedUnion('kind', [
            z.object({ kind: z.literal('circle'), radius: z.number().positive() }),
            z.object({ kind: z.literal('square'), side: z.number().positive() }),
          ])
          .optional(),
        count: z.number().int().min(1).max(10).nullable().optional(),
      },
      outputSchema: { level: z.string() },
      annotations: { readOnlyHint: true },
    },
    ({ level }) => ({ content: [text(level)], structuredContent: { level } }),
  );
}

// eventStore keeps the events of every stream, so that a client which comes back is sent what it missed.
function eventStore() {
  const events = new Map();
  let last = 0;
  return {
    async storeEvent(streamId, message) {
      const id = `${streamId}_${++last}`;
      events.set(id, { streamId, message });
      return id;
    },
    async getStreamIdForEventId(id) {
      return events.get(id)?.streamId;
    },
    async replayEventsAfter(lastId, { send }) {
      const streamId = events.get(lastId)?.streamId;
      let after = false;
      for (const [id, event] of events) {
        if (after && event.streamId === streamId && event.message.jsonrpc) await send(id, event.message);
        after ||= id === lastId;
      }
      return streamId;
    },
  };
}

const sessions = new Map();
const app = createMcpExpressApp();
app.all('/mcp', async (req, res) => {
  const id = req.headers['mcp-session-id'];
  let transport = sessions.get(id);
  if (!transport) {
    if (id || req.body?.method !== 'initialize') {
      const [status, message] = id
        ? [404, 'session not found']
        : [400, 'the header Mcp-Session-Id is required'];
      res.status(status).json({ jsonrpc: '2.0', error: { code: -32000, message }, id: null });
      return;
    }
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      eventStore: eventStore(),
      retryInterval: 500,
      onsessioninitialized: id => {
        sessions.set(id, transport);
      },
      onsessionclosed: id => {
        sessions.delete(id);
      },
    });
    await newServer().connect(transport);
  }
  await transport.handleRequest(req, res, req.body);
});
app.listen(Number(process.argv[2]), '127.0.0.1');
