import { describe, expect, test } from 'vitest';
import { errorLine, normaliseError } from './error-text.ts';

const traceback = (n: number) =>
  `Traceback (most recent call last):\n  File "/srv/app/main.py", line ${n}, in run\n    raise ValueError\nValueError: no number ${n} at 0x7f3${n}a in /tmp/run-${n}/out.txt\n`;
const pydantic = (name: string) => `1 validation error for AccuseInput
culprit
  Extra inputs are not permitted [type=extra_forbidden, input_value='${name}', input_type=str]
    For further information visit https://errors.pydantic.dev/2.9/v/extra_forbidden`;

describe('the words that name a cause stay', () => {
  test.each([
    [`accuse: unexpected argument 'culprit'`, `accuse: unexpected argument 'culprit'`],
    [
      `TypeError: accuse() got an unexpected keyword argument 'culprit'`,
      `TypeError: accuse() got an unexpected keyword argument 'culprit'`,
    ],
    [
      `TypeError: f() missing 2 required positional arguments: 'a' and 'b'`,
      `TypeError: f() missing <n> required positional arguments: 'a' and 'b'`,
    ],
    [`Error: 'foo' is not a valid tool`, `Error: 'foo' is not a valid tool`],
    [`"foo" is not a valid tool`, `'foo' is not a valid tool`],
    [`Unknown tool: foo`, `Unknown tool: foo`],
    [`502 Bad Gateway`, `502 Bad Gateway`],
    [`HTTP/1.1 503 Service Unavailable`, `HTTP/1.1 503 Service Unavailable`],
    [`Client error '404 Not Found' for url 'https://env-7.local/tasks/81'`, `Client error '404 Not Found' for url '…'`],
    [`Request failed with status code 429`, `Request failed with status code 429`],
    [`Command exited with exit code 137`, `Command exited with exit code 137`],
    [`KeyError: 'culprit'`, `KeyError: 'culprit'`],
    [`ModuleNotFoundError: No module named 'sympy'`, `ModuleNotFoundError: No module named 'sympy'`],
    [`AttributeError: 'NoneType' object has no attribute 'group'`, `AttributeError: 'NoneType' object has no attribute 'group'`],
    [
      `Additional properties are not allowed ('culprit' was unexpected)`,
      `Additional properties are not allowed ('culprit' was unexpected)`,
    ],
    [`'name' is a required property`, `'name' is a required property`],
    [`Expecting value: line 1 column 17 (char 16)`, `Expecting value: line <n> column <n> (char <n>)`],
    [`用户 42 不存在`, `用户 <n> 不存在`],
    [`Les données sont invalides: é`, `Les données sont invalides: é`],
  ])('%s', (text, normalised) => expect(normaliseError(text)).toBe(normalised));
});

describe('the parts that differ between rollouts are placeholders', () => {
  test('of a traceback: numbers, addresses and paths', () => {
    expect(normaliseError(traceback(12))).toBe('ValueError: no number <n> at <address> in <path>');
    expect(normaliseError(traceback(12))).toBe(normaliseError(traceback(77)));
  });

  test.each([
    [`no such suspect "Colonel Mustard"`, `no such suspect "Miss Scarlett"`],
    [`Unknown suspect 'Bob'`, `Unknown suspect 'Alice'`],
    [`session 0d9e3c1a-7a3e-4b57-9a39-0d3f8a4c2b11 was lost`, `session 5e9e3c1a-7a3e-4b57-9a39-0d3f8a4c2b99 was lost`],
    [`connect ECONNREFUSED 10.0.0.3:8080`, `connect ECONNREFUSED 10.1.22.3:9090`],
    [`timed out after 30.2 s`, `timed out after 31,7 s`],
    [`bad row {"a": 1, "b": [2]}`, `bad row {"a": 7, "b": [3]}`],
    [`rate limit until 2026-11-27T04:10:00Z`, `rate limit until 2026-11-28T14:12:09.5Z`],
    [`pod env-7f3a9c0d12 is gone`, `pod env-0011223344 is gone`],
    [pydantic('Bob'), pydantic('Alice, "the 2nd"')],
    [
      `[{'type': 'extra_forbidden', 'loc': ('culprit',), 'msg': 'Extra inputs are not permitted', 'input': 'Bob'}]`,
      `[{'type': 'extra_forbidden', 'loc': ('culprit',), 'msg': 'Extra inputs are not permitted', 'input': 'Al'}]`,
    ],
  ])('%s', (a, b) => {
    expect(normaliseError(a)).toBe(normaliseError(b));
    expect(normaliseError(a)).not.toBe('');
  });
});

test('reads the error inside of JSON, and fields and messages of validation errors', () => {
  expect(normaliseError(pydantic('Bob'))).toBe(
    `validation error for AccuseInput: 'culprit': Extra inputs are not permitted [extra_forbidden]`,
  );
  expect(errorLine('{"error":{"code":"session_lost","message":"The backend died"}}')).toBe('session_lost: The backend died');
  expect(errorLine('{"detail":[{"loc":["body","culprit"],"msg":"Field required","type":"missing"}]}')).toBe('culprit: Field required');
  expect(errorLine('{"ok":false}')).toBe('{"ok":false}');
  expect(normaliseError('{"a": {"b": [1, 2]}, "c": 2}')).toBe('<data>');
  expect(errorLine('<html>\n<h1>502 Bad Gateway</h1>\n<hr>nginx failed</html>')).toContain('502 Bad Gateway');
});

test('empty and symbolic texts', () => {
  expect(normaliseError('')).toBe('');
  expect(normaliseError('\n \t ---')).toBe('');
});

test('a huge or hostile text takes bounded work and gives a bounded result', () => {
  const hostile = [
    `'`,
    `"`,
    '{',
    '[',
    '/a',
    '0x',
    'a.',
    '9,',
    `'a' and `,
    'exit ',
    '\\',
    '\u{1F600}',
    'Error: ',
    `unexpected `,
    '\n1 validation error for X\n',
  ];
  for (const part of hostile) {
    const text = part.repeat(5_000_000 / part.length);
    expect(normaliseError(text).length).toBeLessThanOrEqual(200);
    // Only a start and an end are read, so that what lies between makes no difference.
    expect(normaliseError(text)).toBe(normaliseError(part.repeat(4_000_000 / part.length)));
  }
});
