// What the validators of the TypeScript SDKs make of output schemas, for TestClientsValidateResultsAndHandles (test/conformance). It reads
// [{"schema": ..., "values": [...]}, ...] and prints, by validator, for each schema which of its values are valid:
// {"SDK 1": [[true, false], ...], ...}.
import { text } from 'node:stream/consumers';
import { AjvJsonSchemaValidator as First } from '@modelcontextprotocol/sdk/validation/ajv';
import { ListToolsResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { AjvJsonSchemaValidator as Second } from '@modelcontextprotocol/client/validators/ajv';
import { CfWorkerJsonSchemaValidator as Edge } from '@modelcontextprotocol/client/validators/cf-worker';

const cases = JSON.parse(await text(process.stdin));
const verdicts = {};
for (const [name, Validator] of Object.entries({ 'SDK 1': First, 'SDK 2': Second, 'SDK 2 at the edge': Edge })) {
  verdicts[name] = cases.map(({ schema, values }) => {
    const tool = { name: 'tool', inputSchema: { type: 'object' }, outputSchema: schema };
    const { outputSchema } = name === 'SDK 1' ? ListToolsResultSchema.parse({ tools: [tool] }).tools[0] : tool;
    const validate = new Validator().getValidator(outputSchema);
    return values.map(value => validate(value).valid);
  });
}
console.log(JSON.stringify(verdicts));
