import { describe, expect, it } from 'vitest';
import { readConfig } from './config.ts';

describe('readConfig', () => {
  it.each([
    ['PORT', 'eighty'],
    ['PORT', '70000'],
    ['PALESTRA_DEMO', 'maybe'],
    ['S3_ENDPOINT', 'not a url'],
  ])('names the bad variable %s=%s in one line', (name, value) => {
    expect(() => readConfig({ [name]: value }, (path) => path)).toThrow(new RegExp(`^${name}: [^\\n]+$`));
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
