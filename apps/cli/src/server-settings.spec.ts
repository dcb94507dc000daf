import { expect, test } from 'vitest';
import { readSettings } from './server-settings.ts';

test.each(['localhost:8080', '127.0.0.1:8080', 'ftp://host', 'not a URL'])('the address %s is refused', (url) => {
  expect(() => readSettings({ PALESTRA_URL: url })).toThrow(`Invalid URL "${url}". Expected one such as http://127.0.0.1:8080.`);
});

test('an address has a scheme, a name or an IP address, and a port', () => {
  for (const url of ['http://localhost:8080', 'https://palestra.example', 'HTTP://[::1]:8080'])
    expect(readSettings({ PALESTRA_URL: url })).toMatchObject({ url, sessionUrl: url });
});
