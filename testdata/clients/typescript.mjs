// A client on the TypeScript SDK for TestClients: node typescript.mjs VERSION REVISION URL, where VERSION is
// 1 or 2. It prints a line of JSON for each thing that it did, {"step": ..., "got": ...}, and after "ready"
// waits for the tools to change.
const [version, revision, url] = process.argv.slice(2);
const report = (step, got) => console.log(JSON.stringify({ step, got }));

const watched = 'test://watched-resource';
let changed;
const heard = new Promise(resolve => {
  changed = resolve;
});
const onChanged = error => (error ? report('changed', `error: ${error.message}`) : changed());
const options = { capabilities: { elicitation: {} }, listChanged: { tools: { onChanged } } };
const answer = () => ({ action: 'accept', content: { username: 'ada', email: 'ada@example.com' } });

let updated;
const wasUpdated = new Promise(resolve => {
  updated = resolve;
});
const onUpdated = ({ params }) => updated(params.uri);

const { client, transport } = version === '1' ? await first() : await second();
await client.connect(transport);

async function first() {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await import(
    '@modelcontextprotocol/sdk/client/streamableHttp.js'
  );
  const { ElicitRequestSchema, ResourceUpdatedNotificationSchema } = await import('@modelcontextprotocol/sdk/types.js');
  const client = new Client({ name: 'typescript-1', version: '1' }, options);
  client.setRequestHandler(ElicitRequestSchema, answer);
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, onUpdated);
  return { client, transport: new StreamableHTTPClientTransport(new URL(url)) };
}

async function second() {
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const mode = revision === '2026-07-28' ? { pin: revision } : 'legacy';
  const client = new Client(
    { name: 'typescript-2', version: '1' },
    { ...options, versionNegotiation: { mode } },
  );
  client.setRequestHandler('elicitation/create', answer);
  client.setNotificationHandler('notifications/resources/updated', onUpdated);
  return { client, transport: new StreamableHTTPClientTransport(new URL(url)) };
}

async function call(step, name, args) {
  try {
    const { content, isError, structuredContent } = await client.callTool({ name, arguments: args });
    const said = structuredContent
      ? JSON.stringify(structuredContent)
      : content.map(block => block.text).join('\n');
    report(step, (isError ? 'isError: ' : '') + said);
  } catch (error) {
    report(step, `error ${error.code}`);
  }
}

// names lists page by page, and returns the names of everything in the given member of each page.
async function names(list, member) {
  const all = [];
  let cursor;
  do {
    const page = await list(cursor === undefined ? {} : { cursor });
    all.push(...page[member].map(item => item.name));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return all.sort().join(' ');
}
const tools = () => names(params => client.listTools(params), 'tools');
report('revision', client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion);
report('list', await tools());
report('resources', await names(params => client.listResources(params), 'resources'));
report('prompts', await names(params => client.listPrompts(params), 'prompts'));
await call('call', 'test_simple_text', {});
await call('structured', 'typed', { word: 'x' });
await call('error', 'test_error_handling', {});
await call('arguments', 'test_elicitation', { message: 7 });
await call('unknown', 'nothing', {});
await call('elicitation', 'test_elicitation', { message: 'Who are you?' });
await client.listTools({ cursor: 'x' }).then(
  () => report('page', 'a page'),
  error => report('page', `error ${error.code}`),
);

// run calls a tool with options of the call.
const run = (name, options) => {
  const params = { name, arguments: {} };
  return version === '1' ? client.callTool(params, undefined, options) : client.callTool(params, options);
};
const progress = [];
await run('test_tool_with_progress', { onprogress: p => progress.push(p.progress) });
report('progress', progress.join(' '));
const stop = new AbortController();
await run('test_waits', { onprogress: () => stop.abort(), signal: stop.signal }).then(
  () => report('cancel', 'an answer'),
  () => report('cancel', stop.signal.aborted ? 'cancelled' : 'an error'),
);
if (revision === '2026-07-28') await client.listen({ resourceSubscriptions: [watched] });
else await client.subscribeResource({ uri: watched });
// A stream that has only just been asked for may not be there.
let uri;
while (!uri) {
  await run('test_touch');
  uri = await Promise.race([wasUpdated, new Promise(resolve => setTimeout(resolve, 100))]);
}
report('updated', uri);
report('ready');
await heard;
report('changed', await tools());
await client.close();
