// What the suite's test servers on both majors of the TypeScript SDK have in common.
import { z } from 'zod';

const onePixel =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const noSound = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=';

export const text = value => ({ type: 'text', text: value });
const image = { type: 'image', data: onePixel, mimeType: 'image/png' };
const embedded = (uri, mimeType, value) => ({ type: 'resource', resource: { uri, mimeType, text: value } });

export function addContentTools(server) {
  const answers = (name, ...content) =>
    server.registerTool(name, { description: 'Returns content.' }, () => ({ content }));
  answers('test_simple_text', text('This is a simple text response for testing.'));
  answers('test_image_content', image);
  answers('test_audio_content', { type: 'audio', data: noSound, mimeType: 'audio/wav' });
  answers(
    'test_embedded_resource',
    embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.'),
  );
  answers(
    'test_multiple_content_types',
    text('Multiple content types test:'),
    image,
    embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
  );
  server.registerTool('test_error_handling', { description: 'Returns an error.' }, () => {
    throw new Error('This tool intentionally returns an error for testing');
  });
}

const titled = [
  { const: 'value1', title: 'Value One' },
  { const: 'value2', title: 'Value Two' },
];

// forms are what the tools that ask the user ask for, by the tool.
export const forms = {
  test_elicitation: {
    inputSchema: { message: z.string() },
    properties: { username: { type: 'string' }, email: { type: 'string' } },
  },
  test_elicitation_sep1034_defaults: {
    inputSchema: {},
    message: 'Please review and update the form fields with defaults',
    properties: {
      name: { type: 'string', default: 'John Doe' },
      age: { type: 'integer', default: 30 },
      score: { type: 'number', default: 95.5 },
      status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
      verified: { type: 'boolean', default: true },
    },
  },
  test_elicitation_sep1330_enums: {
    inputSchema: {},
    message: 'Please select options',
    properties: {
      untitledSingle: { type: 'string', enum: ['option1', 'option2'] },
      titledSingle: { type: 'string', oneOf: titled },
      legacyEnum: { type: 'string', enum: ['opt1', 'opt2'], enumNames: ['Option One', 'Option Two'] },
      untitledMulti: { type: 'array', items: { type: 'string', enum: ['option1', 'option2'] } },
      titledMulti: { type: 'array', items: { anyOf: titled } },
    },
  },
};

export function addResources(server, ResourceTemplate) {
  const mimeType = 'text/plain';
  const words = 'This is the content of the static text resource.';
  const fixed = (name, uri, contents) =>
    server.registerResource(
      name,
      uri,
      { description: 'A resource of the suite.', mimeType: contents.mimeType },
      () => ({ contents: [contents] }),
    );
  fixed('static-text', 'test://static-text', { uri: 'test://static-text', mimeType, text: words });
  fixed('static-binary', 'test://static-binary', {
    uri: 'test://static-binary',
    mimeType: 'image/png',
    blob: onePixel,
  });
  fixed('watched-resource', 'test://watched-resource', {
    uri: 'test://watched-resource',
    mimeType,
    text: words,
  });
  server.registerResource(
    'template',
    new ResourceTemplate('test://template/{id}/data', { list: undefined }),
    { description: 'A template of the suite.', mimeType: 'application/json' },
    (uri, { id }) => ({
      contents: [
        {
          uri: uri.href,
          mimeType: 'application/json',
          text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
        },
      ],
    }),
  );
}

export function addPrompts(server, completable) {
  const description = 'A prompt of the suite.';
  const says = (name, content, argsSchema) =>
    server.registerPrompt(name, { description, argsSchema }, args => ({
      messages: content(args).map(block => ({ role: 'user', content: block })),
    }));
  says('test_simple_prompt', () => [text('This is a simple prompt for testing.')]);
  const completed = z.string().describe('An argument.');
  says(
    'test_prompt_with_arguments',
    ({ arg1, arg2 }) => [text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)],
    { arg1: completable(completed, () => ['paris', 'park', 'party']), arg2: completed },
  );
  says(
    'test_prompt_with_embedded_resource',
    ({ resourceUri }) => [
      embedded(resourceUri, 'text/plain', 'Embedded resource content for testing.'),
      text('Please process the embedded resource above.'),
    ],
    { resourceUri: z.string().describe('An address.') },
  );
  says('test_prompt_with_image', () => [image, text('Please analyze the image above.')]);
}
