// The conformance suite's test server on the TypeScript SDK 2.x. It listens on 127.0.0.1, on the port of its
// one argument, speaks 2026-07-28, and answers older clients without sessions, as the SDK does by default.
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  localhostHostValidation,
  localhostOriginValidation,
  toNodeHandler,
} from '@modelcontextprotocol/node';
import {
  McpServer,
  MissingRequiredClientCapabilityError,
  ResourceTemplate,
  acceptedContent,
  completable,
  createMcpHandler,
  fromJsonSchema,
  inputRequired,
} from '@modelcontextprotocol/server';
import { z } from 'zod';
import { addContentTools, addPrompts, addResources, forms, text } from './typescript.mjs';

// added are the names of what test_trigger_tool_change and test_trigger_prompt_change have added.
const added = { tools: new Set(), prompts: new Set() };

function verify(state) {
  if (!/^sealed:[a-z0-9-]+$/.test(state)) throw new Error('not a state of this server');
}

function newServer() {
  const server = new McpServer(
    { name: 'conformance-ts', version: '2.0.0' },
    {
      capabilities: { logging: {}, tools: { listChanged: true }, prompts: { listChanged: true } },
      requestState: { verify },
    },
  );
  addContentTools(server);
  addSpeakingTools(server);
  addAskingTools(server);
  addResources(server, ResourceTemplate);
  addPrompts(server, completable);
  addChanges(server);
  return server;
}

function addSpeakingTools(server) {
  const describe = description => ({ description });
  server.registerTool('test_tool_with_logging', describe('Logs while it runs.'), async ({ mcpReq }) => {
    for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
      await mcpReq.log('info', data);
      await sleep(50);
    }
    return { content: [text('done')] };
  });
  server.registerTool('test_logging_tool', describe('Logs if it is asked to.'), async ({ mcpReq }) => {
    await mcpReq.log('info', 'logged');
    return { content: [text('done')] };
  });
  server.registerTool(
    'test_tool_with_progress',
    describe('Reports progress while it runs.'),
    async ({ mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken;
      for (const progress of [0, 50, 100]) {
        if (progressToken !== undefined) {
          await mcpReq.notify({
            method: 'notifications/progress',
            params: { progressToken, progress, total: 100 },
          });
        }
        await sleep(50);
      }
      return { content: [text(String(progressToken))] };
    },
  );
  server.registerTool(
    'json_schema_2020_12_tool',
    {
      description: 'Tool with JSON Schema 2020-12 features',
      inputSchema: fromJsonSchema({
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        $defs: {
          address: {
            $anchor: 'addressDef',
            type: 'object',
            properties: { street: { type: 'string' }, city: { type: 'string' } },
          },
        },
        properties: {
          name: { type: 'string' },
          address: { $ref: '#/$defs/address' },
          contactMethod: { type: 'string', enum: ['phone', 'email'] },
          phone: { type: 'string' },
          email: { type: 'string' },
        },
        allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
        if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
        then: { required: ['phone'] },
        else: { required: ['email'] },
        additionalProperties: false,
      }),
    },
    () => ({ content: [text('done')] }),
  );
  server.registerTool(
    'test_headers',
    {
      description: 'Has an argument that is mirrored in a header.',
      inputSchema: fromJsonSchema({
        type: 'object',
        properties: { region: { type: 'string', 'x-mcp-header': 'Region' } },
      }),
    },
    () => ({ content: [text('done')] }),
  );
  server.registerTool('test_streaming_elicitation', describe('Answers on its stream.'), () => ({
    content: [text('done')],
  }));
}

// addChanges adds what changes the lists, and what was added so.
function addChanges(server) {
  const changes = (kind, tell) =>
    server.registerTool(`test_trigger_${kind}_change`, { description: 'Changes a list.' }, () => {
      added[`${kind}s`].add(`added_${kind}`);
      tell();
      return { content: [text('done')] };
    });
  changes('tool', () => mcp.notify.toolsChanged());
  changes('prompt', () => mcp.notify.promptsChanged());
  for (const tool of added.tools)
    server.registerTool(tool, { description: 'Was added.' }, () => ({ content: [] }));
  for (const prompt of added.prompts)
    server.registerPrompt(prompt, { description: 'Was added.' }, () => ({ messages: [] }));
}

const form = (message, field, type) =>
  inputRequired.elicit({
    message,
    requestedSchema: { type: 'object', properties: { [field]: { type } }, required: [field] },
  });
const name = () => form('What is your name?', 'name', 'string');
const confirm = () => form('Please confirm', 'ok', 'boolean');
const sample = words =>
  inputRequired.createMessage({ messages: [{ role: 'user', content: text(words) }], maxTokens: 100 });

function addAskingTools(server) {
  // asks registers a tool that asks until it has an answer by each name of the questions.
  const asks = (tool, questions, requestState) => {
    server.registerTool(tool, { description: 'Asks before it answers.' }, ({ mcpReq }) => {
      const missing = Object.keys(questions).filter(id => mcpReq.inputResponses?.[id] === undefined);
      if (missing.length === 0)
        return { content: [text(`state-ok: ${JSON.stringify(mcpReq.inputResponses)}`)] };
      const inputRequests = Object.fromEntries(Object.entries(questions).map(([id, ask]) => [id, ask()]));
      return inputRequired({ inputRequests, requestState });
    });
  };
  const prefix = 'test_input_required_result_';
  asks(`${prefix}elicitation`, { user_name: name });
  asks(`${prefix}sampling`, { capital_question: () => sample('What is the capital of France?') });
  asks(`${prefix}list_roots`, { client_roots: inputRequired.listRoots });
  asks(`${prefix}request_state`, { confirm }, 'sealed:1');
  asks(`${prefix}tampered_state`, { confirm }, 'sealed:2');
  asks(
    `${prefix}multiple_inputs`,
    { user_name: name, greeting: () => sample('Generate a greeting'), client_roots: inputRequired.listRoots },
    'sealed:3',
  );
  for (const [tool, { message, properties, inputSchema }] of Object.entries(forms)) {
    server.registerTool(
      tool,
      { description: 'Asks the user.', inputSchema: z.object(inputSchema) },
      (args, { mcpReq }) => {
        const { action, content } = mcpReq.inputResponses?.answer ?? {};
        if (action) return { content: [text(`action=${action}, content=${JSON.stringify(content ?? {})}`)] };
        const requestedSchema = { type: 'object', properties };
        const answer = inputRequired.elicit({ message: args.message ?? message, requestedSchema });
        return inputRequired({ inputRequests: { answer } });
      },
    );
  }
  const prompt = {
    description: 'Asks the model of the client.',
    inputSchema: z.object({ prompt: z.string() }),
  };
  server.registerTool('test_sampling', prompt, (args, { mcpReq }) => {
    const said = mcpReq.inputResponses?.answer;
    if (said) return { content: [text(`LLM response: ${said.content?.text}`)] };
    return inputRequired({ inputRequests: { answer: sample(args.prompt) } });
  });
  const can = mcpReq => mcpReq.envelope?.['io.modelcontextprotocol/clientCapabilities'] ?? {};
  server.registerTool(
    `${prefix}capabilities`,
    { description: 'Asks what the client can answer.' },
    ({ mcpReq }) => {
      if (mcpReq.inputResponses !== undefined) return { content: [text('done')] };
      const inputRequests = {};
      if (can(mcpReq).elicitation) inputRequests.user_name = name();
      if (can(mcpReq).sampling) inputRequests.greeting = sample('Generate a greeting');
      return inputRequired({ inputRequests });
    },
  );
  server.registerTool('test_missing_capability', { description: 'Needs sampling.' }, ({ mcpReq }) => {
    if (!can(mcpReq).sampling)
      throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { sampling: {} } });
    return { content: [text('done')] };
  });
  server.registerPrompt(`${prefix}prompt`, { description: 'Asks before it answers.' }, ({ mcpReq }) => {
    const context = acceptedContent(mcpReq.inputResponses, 'user_context')?.context;
    if (context) return { messages: [{ role: 'user', content: text(`with ${context}`) }] };
    const question = form('What context should the prompt use?', 'context', 'string');
    return inputRequired({ inputRequests: { user_context: question } });
  });
  server.registerTool(`${prefix}multi_round`, { description: 'Asks twice.' }, ({ mcpReq }) => {
    if (mcpReq.inputResponses?.step2 !== undefined) return { content: [text('done')] };
    if (mcpReq.inputResponses?.step1 !== undefined) {
      const step2 = form('Step 2: What is your favorite color?', 'color', 'string');
      return inputRequired({ inputRequests: { step2 }, requestState: 'sealed:round-2' });
    }
    const step1 = form('Step 1: What is your name?', 'name', 'string');
    return inputRequired({ inputRequests: { step1 }, requestState: 'sealed:round-1' });
  });
}

const mcp = createMcpHandler(newServer);
const handler = toNodeHandler(mcp);
const hostOk = localhostHostValidation();
const originOk = localhostOriginValidation();
createServer((req, res) => {
  if (hostOk(req, res) && originOk(req, res)) handler(req, res);
}).listen(Number(process.argv[2]), '127.0.0.1');
