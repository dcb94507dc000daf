import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { type ErrorCode, errorCatalogue } from '@palestra/protocol';
import { parseSync } from 'vite';
import { expect, test } from 'vitest';

/** What a program can check of the rules for texts in CONTRIBUTING.md. */
const root = path.resolve(import.meta.dirname, '..');

/** JSX attributes and object properties whose text stands alone. */
const STANDALONE_NAMES = new Set('about action aria-label button explain head heading hint label note placeholder title'.split(' '));
/** Elements whose text stands alone. */
const STANDALONE_ELEMENTS = new Set('button dt h1 h2 h3 h4 legend option summary th Item Menu.Item Crumb'.split(' '));
/** First words that are names of code, of a format or of a statistic, or the symbol of a figure. */
const CODE =
  /^(?:\S*[_:./@=<>(){}[\]+\d^*≥]\S*|n|p|std|adv|alpha|axe|curl|ddof|slime|miles|tinker|verl|firehorse|openreward|prime-rl|rLLM)(?=$|[\s,;:’])/;

/** Examples of names, a word of JSON, and the second half of “Between step … and …”. */
const NAMES = new Set(['on-call', 'trainer-2', 'vision-team', 'whodunit', 'guess', 'main', 'null', 'and']);

interface Node {
  type: string;
  start: number;
  [key: string]: unknown;
}
interface Found {
  file: string;
  start: number;
  text: string;
}

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'type' in value;
const childrenOf = (node: Node): Node[] =>
  Object.entries(node)
    .filter(([key]) => key !== 'test' || node.type !== 'ConditionalExpression')
    .flatMap(([, value]) => (Array.isArray(value) ? value : [value]))
    .filter(isNode);
const nameOf = (node: unknown): string => {
  const { name, value, object, property } = (node ?? {}) as { name?: unknown; value?: unknown; object?: unknown; property?: unknown };
  if (object) return `${nameOf(object)}.${nameOf(property)}`;
  return typeof name === 'string' ? name : typeof value === 'string' ? value : name ? nameOf(name) : '';
};

/** The texts with which the value of an expression may begin. */
function beginnings(node: unknown): string[] {
  if (!isNode(node)) return [];
  switch (node.type) {
    case 'Literal':
      return typeof node['value'] === 'string' ? [node['value']] : [];
    case 'TemplateLiteral':
      return [(node['quasis'] as { value: { raw: string } }[])[0]!.value.raw];
    case 'JSXText':
      return [(node['value'] as string).trim()];
    case 'ConditionalExpression':
      return [...beginnings(node['consequent']), ...beginnings(node['alternate'])];
    case 'LogicalExpression':
      return [...(node['operator'] === '&&' ? [] : beginnings(node['left'])), ...beginnings(node['right'])];
    case 'BinaryExpression':
      return beginnings(node['left']);
    case 'JSXExpressionContainer':
    case 'TSAsExpression':
    case 'ParenthesizedExpression':
      return beginnings(node['expression']);
    case 'JSXFragment':
      return beginnings(firstChild(node));
    default:
      return [];
  }
}

const firstChild = (element: Node): Node | undefined =>
  (element['children'] as Node[]).find((child) => child.type !== 'JSXText' || (child['value'] as string).trim() !== '');

/** Texts that stand alone, and all texts, of a source file. */
function textsOf(file: string): { standalone: Found[]; all: Found[] } {
  const code = readFileSync(path.join(root, file), 'utf8');
  const standalone: Found[] = [];
  const all: Found[] = [];
  const found = ({ start }: Node, text: string): Found => ({ file, start, text });
  const visit = (node: Node): void => {
    const isProperty = node.type === 'JSXAttribute' || node.type === 'Property';
    const name = isProperty ? nameOf(node['key'] ?? node['name']) : '';
    if (/^(?:Import|Export(?:All|Named)Declaration$|TS)/.test(node.type) && (node['source'] || node.type.startsWith('TSType'))) return;
    if (STANDALONE_NAMES.has(name)) standalone.push(...beginnings(node['value']).map((text) => found(node, text)));
    if (node.type === 'JSXElement' && STANDALONE_ELEMENTS.has(nameOf((node['openingElement'] as Node)['name'])))
      standalone.push(...beginnings(firstChild(node)).map((text) => found(node, text)));
    if (name === 'className') return;
    if (node.type === 'Literal' && typeof node['value'] === 'string') all.push(found(node, node['value']));
    if (node.type === 'JSXText' || node.type === 'TemplateElement') all.push(found(node, code.slice(node.start, node['end'] as number)));
    childrenOf(node).forEach(visit);
  };
  visit(parseSync(file, code).program as unknown as Node);
  return { standalone, all };
}

const sources = (folder: string) =>
  readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file) && !/\.spec\.|\.fixture\.|\.d\.ts$|node_modules|[/\\]dist[/\\]|generated/.test(file))
    .map((file) => textsOf(`${folder}/${file}`));
const pages = sources('apps/dashboard/src');
const lineOf = ({ file, start }: Found) => readFileSync(path.join(root, file), 'utf8').slice(0, start).split('\n').length;
const listed = (found: readonly Found[]) => found.map((one) => `${one.file}:${lineOf(one)} ${one.text.trim()}`);

test('texts of the pages that stand alone begin with a capital', () => {
  const texts = pages.flatMap(({ standalone }) => standalone);
  expect(texts.length).toBeGreaterThan(1_000);
  expect(listed(texts.filter(({ text }) => /^\p{Ll}/u.test(text) && !CODE.test(text) && !NAMES.has(text)))).toEqual([]);
});

/** Words of translated idioms and of metaphors, and openings that hide who does what. */
const AVOIDED =
  /\b(?:anew|whoever|nobody|somebody|of (?:its|their|one's) own|is none|be it|any ?more|broken off|last words|what is told|made of it)\b|^What (?:is|was|are|were) (?!new)/i;

test('texts of pages, commands, documents of the API and errors have no words that CONTRIBUTING.md rules out', () => {
  const others = ['apps/api/src', 'apps/cli/src', 'apps/worker/src', 'libs'].flatMap(sources);
  const texts = [...pages, ...others].flatMap(({ all }) => all);
  expect(texts.length).toBeGreaterThan(5_000);
  // Texts have spaces; names of code have none.
  expect(listed(texts.filter(({ text }) => text.trim().includes(' ') && AVOIDED.test(text.trim())))).toEqual([]);
});

/** Texts that clients of the Open Reward Standard and HTTP know. */
const WIRE_TEXTS = new Set<ErrorCode>([
  'route_not_found',
  'method_not_allowed',
  'unknown_variant',
  'invalid_split',
  'invalid_index',
  'invalid_index_range',
  'unknown_toolset',
  'session_id_required',
  'session_exists',
  'session_not_found',
  'session_deleted',
  'tasks_not_listable',
  'score_group_unsupported',
  'messages_unsupported',
  'internal_error',
]);

test('the text of an error is one or more whole sentences', () => {
  const texts = Object.entries(errorCatalogue).filter(([code]) => !WIRE_TEXTS.has(code as ErrorCode));
  expect(texts.length).toBeGreaterThan(60);
  expect(
    texts.filter(([, { text }]) => !/^[A-Z].*\.$/.test(text) || text.includes(';')).map(([code, { text }]) => `${code}: ${text}`),
  ).toEqual([]);
});
