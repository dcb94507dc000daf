import { describe, expect, it } from 'vitest';
import { readConfig } from './config.ts';

describe('readConfig', () => {
  it.each([
    ['PORT', 'eighty'],
    ['PORT', '70000'],
    ['PALESTRA_DEMO', 'maybe'],
    ['S3_ENDPOINT', 'not a url'],
    ['PALESTRA_ALLOW_PRIVATE_UPSTREAMS', 'yes'],
    ['PALESTRA_ALLOW_PRIVATE_UPSTREAMS', '10.0.0.0/8,example.com'],
    ['PALESTRA_ALLOW_PRIVATE_UPSTREAMS', '10.0.0.0/8,'],
    ['PALESTRA_ALLOWED_ORIGINS', '*'],
    ['PALESTRA_ALLOWED_ORIGINS', 'tools.example'],
    ['PALESTRA_ALLOWED_ORIGINS', 'https://tools.example/'],
    ['PALESTRA_HOSTING', 'process'],
    ['PALESTRA_HOSTING', 'kubernetes'],
    ['PALESTRA_DOCKER_NETWORK', 'host/../x'],
    ['PALESTRA_HOSTING_REACHABLE', '10.0.0.0/8,models.internal'],
    ['PALESTRA_HOSTING_REACHABLE', '10.0.0.0/33'],
    ['PALESTRA_PYTHON_PACKAGE', 'palestra==1.0'],
  ])('names the bad variable %s=%s in one line', (name, value) => {
    expect(() => readConfig({ [name]: value }, (path) => path)).toThrow(new RegExp(`^${name}: [^\\n]+$`));
  });

  it.each([
    ['1', 'allowed'],
    ['0', 'refused'],
    ['10.0.0.0/8, fd00::/8,192.168.1.1', ['10.0.0.0/8', 'fd00::/8', '192.168.1.1']],
    ['', null],
  ])('accepts %j for private addresses of users', (value, expected) => {
    expect(readConfig({ PALESTRA_ALLOW_PRIVATE_UPSTREAMS: value }, (path) => path).privateUpstreams).toEqual(expected);
  });

  it('has defaults for a laptop', () => {
    expect(readConfig({ S3_BUCKET: '' }, (path) => `/cwd/${path}`)).toMatchObject({
      host: '127.0.0.1',
      port: 8080,
      dataDir: '/cwd/.palestra',
      s3: null,
      databaseUrl: null,
      demo: true,
    });
  });
});
